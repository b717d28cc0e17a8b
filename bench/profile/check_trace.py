#!/usr/bin/env python3
"""check_trace.py TRACE...: parses traces of `kintsugi profile --trace` and `kintsugi plan --cluster --trace` with Perfetto's
own protobuf classes. Each packet must be one that these know entirely; slices of a track must lie within each other; a flow
must be one send and its receive, in this order, or all members of a collective; and what the measured steps of a rank hold must add
up to them within 1%. Needs: pip install perfetto protobuf."""

import sys
from collections import defaultdict
from pathlib import Path

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def unknown_fields(message, path="trace"):
    found = [f"{path}: unknown field {field.field_number}" for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type:
            for one in value if descriptor.is_repeated else [value]:
                found += unknown_fields(one, f"{path}.{descriptor.name}")
    return found


class Slice:
    def __init__(self, event, time):
        self.name, self.begin, self.end, self.children = event.name, time, None, []
        self.through, self.ends = list(event.flow_ids), list(event.terminating_flow_ids)
        self.notes = {note.name: note for note in event.debug_annotations}


def slices_of(trace, faults):
    """By track: its outermost slices; and all slices."""
    described, stacks, roots, everything, sequences = {}, defaultdict(list), defaultdict(list), [], set()
    last_time = defaultdict(int)
    for packet in trace.packet:
        sequences.add(packet.trusted_packet_sequence_id)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid in described:
                faults.append(f"track {track.uuid} is described twice")
            if track.parent_uuid and track.parent_uuid not in described:
                faults.append(f"track {track.uuid} has a parent that is not described")
            described[track.uuid] = track
            continue
        event, time = packet.track_event, packet.timestamp
        if event.track_uuid not in described:
            faults.append(f"an event on track {event.track_uuid}, which is not described")
        if time < last_time[event.track_uuid]:
            faults.append(f"track {event.track_uuid} goes back from {last_time[event.track_uuid]} to {time}")
        last_time[event.track_uuid] = time
        stack = stacks[event.track_uuid]
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun = Slice(event, time)
            (stack[-1].children if stack else roots[event.track_uuid]).append(begun)
            stack.append(begun)
            everything.append(begun)
        elif event.type == TrackEvent.TYPE_SLICE_END and stack:
            stack.pop().end = time
        else:
            faults.append(f"an event of type {event.type} on track {event.track_uuid}, at depth {len(stack)}")
    faults += [f"{len(stack)} slices of track {track} have no end" for track, stack in stacks.items() if stack]
    if 0 in sequences:
        faults.append("a packet without a sequence")
    for track in described.values():
        if track.HasField("thread") and described[track.parent_uuid].process.pid != track.thread.pid:
            faults.append(f"thread {track.thread.tid} is not of its parent's process")
    return described, roots, everything


def check_flows(everything, faults):
    through, ends = defaultdict(list), defaultdict(list)
    for one in everything:
        for flow in one.through:
            through[flow].append(one)
        for flow in one.ends:
            ends[flow].append(one)
    messages = collectives = 0
    for flow in through.keys() | ends.keys():
        first, last = through[flow], ends[flow]
        if last:
            messages += 1
            if len(first) != 1 or len(last) != 1:
                faults.append(f"flow {flow:#x} has {len(first)} sends and {len(last)} receives")
            elif last[0].begin < first[0].begin:
                faults.append(f"flow {flow:#x} ends before it begins")
        else:
            collectives += 1
            members = first[0].notes["members"].int_value if "members" in first[0].notes else 0
            if len(first) != members:
                faults.append(f"flow {flow:#x} of \"{first[0].name}\" has {len(first)} of {members} members")
    return messages, collectives


def check_sums(described, roots, faults):
    """Of the measured steps of each rank together: in their calls and inputs, and of calls in their instructions. A step alone
    may have been interrupted by another program just between two calls."""
    steps, worst = 0, 0.0
    for uuid, track in roots.items():
        measured = [root for root in track if root.name.startswith("step ")]
        if not measured:
            continue
        steps += len(measured)
        leaves = [child for step in measured for call in step.children for child in call.children or [call]]
        whole = sum(step.end - step.begin for step in measured)
        between = 1 - sum(leaf.end - leaf.begin for leaf in leaves) / whole
        worst = max(worst, between)
        if not 0 <= between <= 0.01:
            faults.append(f"rank {described[uuid].thread.pid - 1}: {100 * between:.2f}% of its steps is in no instruction")
    return steps, worst


def check(path):
    faults = []
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    faults += unknown_fields(trace)[:10]
    described, roots, everything = slices_of(trace, faults)
    messages, collectives = check_flows(everything, faults)
    steps, between = check_sums(described, roots, faults)
    print(f"{path}: {len(trace.packet)} packets, {len(described)} tracks, {len(everything)} slices, {messages} messages,"
          f" {collectives} collectives, {steps} steps of ranks (between instructions at most {100 * between:.2f}%),"
          f" {len(faults)} faults")
    for fault in faults[:20]:
        print("  " + fault)
    return not faults


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(not all([check(Path(name)) for name in sys.argv[1:]]))
