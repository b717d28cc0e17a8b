#!/usr/bin/env python3
"""look.py PAGE FOLDER: opens a page of `kintsugi report` in a headless Chromium, wide and narrow, light and dark, writes a
picture of each into FOLDER, and a PDF as it is printed. Fails where the page asks for anything but itself, says anything in the
browser's console, is wider than the window, or has a curve or a picture that is not seen. Needs: a Chromium, and
pip install playwright."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

LOOKS = [  # name, width, height, pixels for each, scheme
    ("wide_light", 1280, 900, 1, "light"),
    ("wide_dark", 1280, 900, 1, "dark"),
    ("phone_light", 390, 844, 2, "light"),
    ("phone_dark", 390, 844, 2, "dark"),
]

# What has no size on the page. A curve of one value is a dot, whose size is that of its stroke alone.
UNSEEN = """() => [...document.querySelectorAll('svg, .plot path')].filter(e => !e.closest('details:not([open])'))
  .filter(e => !/^M[-0-9 ]+h0$/.test(e.getAttribute('d')))
  .filter(e => { const r = e.getBoundingClientRect(); return r.width + r.height < 1; })
  .map(e => e.outerHTML.slice(0, 80))"""


def main(page_file, folder):
    folder.mkdir(parents=True, exist_ok=True)
    faults = []
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, width, height, scale, scheme in LOOKS:
            context = browser.new_context(
                viewport={"width": width, "height": height}, device_scale_factor=scale, color_scheme=scheme,
                is_mobile=name.startswith("phone"))
            page = context.new_page()
            requests = []
            page.on("console", lambda message: faults.append(f"{name}: console: {message.text}"))
            page.on("pageerror", lambda error: faults.append(f"{name}: error: {error}"))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(page_file.resolve().as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth")
            curves = page.locator(".plot path").count()
            faults += [f"{name}: asks for {url[:100]}" for url in requests[1:]]
            faults += [f"{name}: {wide} wide in a window of {width}"] if wide > width else []
            faults += [f"{name}: not seen: {unseen}" for unseen in page.evaluate(UNSEEN)]
            faults += [f"{name}: no curves"] if curves == 0 else []
            page.screenshot(path=folder / f"{name}.png", full_page=True)
            height = page.evaluate("document.documentElement.scrollHeight")
            print(f"{name}: {width} x {height}, {curves} paths of charts, {page.locator('.picture svg').count()} pictures")
            if name == "wide_dark":  # on paper it is light all the same
                page.pdf(path=folder / "printed.pdf", format="A4",
                         margin={side: "1.5cm" for side in ("top", "bottom", "left", "right")})
            context.close()
        browser.close()
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return not faults


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(not main(Path(sys.argv[1]), Path(sys.argv[2])))
