#!/usr/bin/env python3
"""Loads `kintsugi serve` with good, damaged and oversized requests, and clients that leave, wait or read slowly, from 8
threads.

    bench/serve/load.py build/app/kintsugi MODEL [--seconds 60]

Every good answer to a prompt must be the same text, damaged requests get 200, 400, 404 or 429, nothing is left running at
the end, the memory of the server stops growing, and it ends at SIGTERM with code 0. Prints counts, the longest time of a
good answer, and the memory of the server at the beginning, after half of the time and at the end.
"""
import argparse
import json
import random
import re
import socket
import subprocess
import sys
import threading
import time


def exchange(port, data, leave_after=None):
    """What the server answers; b"" where this client leaves first, or the server closes without an answer."""
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    try:
        s.sendall(data)
        if leave_after is not None:
            time.sleep(leave_after)
            return b""
        answer = b""
        while part := s.recv(65536):
            answer += part
        return answer
    except OSError:
        return b""
    finally:
        s.close()


def post(body):
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def parse(answer):
    head, _, rest = answer.partition(b"\r\n\r\n")
    body = rest
    if b"chunked" in head:
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            if int(size, 16) == 0:
                break
            body += rest[:int(size, 16)]
            rest = rest[int(size, 16) + 2:]
    return int(head[9:12]), body


def read_slowly(port, data, seconds):
    """A small window, and a few bytes at a time; then the connection is closed."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    s.settimeout(5)
    try:
        s.connect(("127.0.0.1", port))
        s.sendall(data)
        end = time.time() + seconds
        while time.time() < end and s.recv(16):
            time.sleep(0.05)
    except OSError:
        pass
    finally:
        s.close()


class Load:
    def __init__(self, port, seconds):
        self.port, self.end, self.longest = port, time.time() + seconds, 0.0
        self.counts = dict.fromkeys(["good", "refused", "left", "slow", "half", "damaged", "large", "garbage", "wrong"], 0)
        self.texts, self.lock = {}, threading.Lock()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def good(self, i, body):
        begun = time.time()
        answer = exchange(self.port, post(body))
        with self.lock:
            self.longest = max(self.longest, time.time() - begun)
        status, found = parse(answer) if answer else (0, b"")
        if status != 200:
            return self.count("refused" if status == 429 else "wrong")
        text = json.loads(found)["choices"][0]["text"]
        with self.lock:
            same = self.texts.setdefault(i, text) == text
        self.count("good" if same else "wrong")

    def work(self, seed):
        r = random.Random(seed)
        while time.time() < self.end:
            kind, i = r.random(), r.randrange(8)
            body = json.dumps({"model": "m", "prompt": f"Question: {i}", "max_tokens": 20, "temperature": 0,
                               "logprobs": r.choice([None, 2])}).encode()
            if kind < 0.5:
                self.good(i, body)
            elif kind < 0.53:
                long = {"model": "m", "prompt": "a", "max_tokens": 200, "stream": True, "logprobs": 20, "n": 4}
                read_slowly(self.port, post(json.dumps(long).encode()), 3 * r.random())
                self.count("slow")
            elif kind < 0.56:
                exchange(self.port, post(body)[:r.randrange(1, 60)], leave_after=3 * r.random())
                self.count("half")
            elif kind < 0.7:
                long = {"model": "m", "prompt": "a", "max_tokens": 200, "n": r.randrange(1, 5), "stream": r.random() < 0.5}
                exchange(self.port, post(json.dumps(long).encode()), leave_after=0.2 * r.random())
                self.count("left")
            elif kind < 0.9:
                damaged = bytearray(body)
                for _ in range(r.randrange(1, 6)):
                    damaged[r.randrange(len(damaged))] = r.randrange(256)
                answer = exchange(self.port, post(bytes(damaged)))
                self.count("damaged" if not answer or parse(answer)[0] in (200, 400, 404, 429) else "wrong")
            elif kind < 0.95:
                exchange(self.port, post(b"x" * 6_000_000))
                self.count("large")
            else:
                exchange(self.port, bytes(r.randrange(256) for _ in range(r.randrange(200))), leave_after=0.1)
                self.count("garbage")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    o = parser.parse_args()
    server = subprocess.Popen([o.command, "serve", o.model, "--name", "m", "--port", "0", "--client-limit", "2"],
                              stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)\s*$", server.stdout.readline()).group(1))

    def memory():
        with open(f"/proc/{server.pid}/status") as status:
            return int(re.search(r"VmRSS:\s*(\d+)", status.read()).group(1))

    before, load = memory(), Load(port, o.seconds)
    threads = [threading.Thread(target=load.work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(o.seconds / 2)
    half = memory()
    for thread in threads:
        thread.join()
    time.sleep(3)
    metrics = exchange(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").decode()
    running = int(re.search(r"^kintsugi_requests_running (\d+)", metrics, re.M).group(1))
    after = memory()
    server.terminate()
    code = server.wait(60)
    print(f"{load.counts}, {running} left running, code {code}, longest good answer {load.longest:.1f} s, memory {before} kB "
          f"at the beginning, {half} kB after half of the time, {after} kB at the end")
    bounded = after < 1.1 * half + 10_000
    sys.exit(0 if load.counts["wrong"] == 0 and running == 0 and code == 0 and bounded else 1)


if __name__ == "__main__":
    main()
