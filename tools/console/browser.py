"""Chromium without a window, as somebody at a desk or with a phone has it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

DESKTOP, PHONE = (1280, 900), (390, 844)
# So long a busy machine may take.
PATIENCE = 60.0


class Difference(AssertionError):
    """What is on the page is not what must be."""


def holds(condition: Any, what: str) -> None:
    """Fails unless the condition is true."""
    if not condition:
        raise Difference(f"not so: {what}")


class Browser:
    """One window on a console."""

    def __init__(self, url: str, pictures: Path):
        self.url = f"{url}/console/"
        self.pictures = pictures
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                         "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(PATIENCE)

    def quit(self) -> None:
        """Ends browser and driver."""
        self.driver.quit()

    # Looking.

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """The first true value of the condition, asked again until the patience is over."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if value := condition():
                    return value
            except (JavascriptException, WebDriverException):
                # The page was drawn anew meanwhile.
                pass
            if time.monotonic() > end:
                raise Difference(f"not in time: {what}; the page says:\n{self.text()[:600]}")
            time.sleep(0.05)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script gives."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        """Elements that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def find(self, selector: str) -> WebElement:
        """The first one that is seen, when it is."""
        return self.until(
            lambda: next((one for one in self.all(selector) if one.is_displayed()), None),
            f"{selector} is there")

    def text(self) -> str:
        """All that is written in the view."""
        return self.run("return document.getElementById('main')?.innerText ?? ''")

    def sees(self, text: str) -> None:
        """Waits until a text is in the view."""
        self.until(lambda: text in self.text(), f"{text!r} is seen")

    # Doing.

    def open(self, view: str, query: str = "") -> None:
        """Shows a view, and waits until it is there."""
        address = f"#/{view}" + (f"?{query}" if query else "")
        # Also if it is shown already: drawn anew.
        self.run("document.getElementById('main').dataset.view = '';"
                 "if (location.hash === arguments[0]) dispatchEvent(new Event('hashchange'));"
                 "else location.hash = arguments[0];", address)
        self.until(lambda: self.run(
            "return document.getElementById('main').dataset.view") == view, f"{view} is shown")

    def sign_in(self, token: str) -> None:
        """Opens the page and signs in, by the keyboard alone."""
        self.driver.get(self.url)
        self.find("#token").send_keys(token, Keys.ENTER)
        self.until(lambda: self.run(
            "return document.getElementById('main').dataset.view") == "overview", "signed in")

    def press(self, *keys: str) -> None:
        """Keys, for whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def resize(self, size: tuple[int, int]) -> None:
        """The width and height of what is seen, as a device has them."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1,
            "mobile": size == PHONE})

    def darken(self, is_dark: bool) -> None:
        """As the system of who looks has it."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def picture(self, name: str) -> None:
        """Of what is seen now."""
        self.driver.save_screenshot(str(self.pictures / f"{name}.png"))

    def problems(self) -> list[str]:
        """What the console of the browser has complained about since it was asked last: failures
        of scripts, and whatever the policy has kept from being loaded. That nobody is signed in
        yet is told by a status, which it notes, too."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")
                and not ("/console/api/session" in entry["message"]
                         and "status of 40" in entry["message"])]
