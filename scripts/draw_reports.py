"""Photographs the pages of `meta --html` and `tune-layers --html` for the documents, in Chromium.

python scripts/draw_reports.py METRICS.html LAYERS.html
"""

import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 1180


def main() -> None:
    """Write the pictures: the heads of both pages, and the systems by human scores and each metric."""
    metrics, layers = (Path(name).absolute().as_uri() for name in sys.argv[1:])
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for switch in ("headless", "no-sandbox", "hide-scrollbars"):
        options.add_argument(f"--{switch}")
    with webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        for page, height, name in ((metrics, 1040, "metrics_report.png"), (layers, 960, "layers_report.png")):
            size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(page)
            browser.save_screenshot(str(IMAGES / name))
        browser.get(metrics)
        browser.find_element(By.CLASS_NAME, "planes").screenshot(str(IMAGES / "systems_report.png"))


if __name__ == "__main__":
    main()
