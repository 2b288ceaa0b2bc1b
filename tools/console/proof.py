"""Looks at every view of the console in a browser, and does what people do there."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from selenium.webdriver.common.keys import Keys

import fixture as data
from browser import DESKTOP, PHONE, Browser, holds
from fixture import Fixture

Check = Callable[[Browser, Fixture], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Registers one by its name."""
    CHECKS[function.__name__] = function
    return function


def quoted(text: str) -> str:
    """As it stands in an address."""
    return urllib.parse.quote(text, safe="")


def shared(browser: Browser, query: str = "") -> None:
    """The records of the shared dataset."""
    browser.open("records", f"dataset={data.SHARED}{query}")


def open_record(browser: Browser, dataset: str, prefix: str) -> None:
    """The record whose key begins so, by way of its list."""
    browser.open("records", f"dataset={quoted(dataset)}&prefix={quoted(prefix)}")
    browser.find("table.rows tbody a").click()
    browser.find("#edit")


VIEWS = ["overview", "identities", "datasets", "live", "replicas", "devices", "conflicts",
         "charts", "settings", "audit"]


def look(browser: Browser, fixture: Fixture, name: str) -> None:
    """Opens each view with data, and takes its picture."""
    pages = [(view, "") for view in VIEWS]
    pages += [("identity", f"identity={quoted(fixture.identity)}"),
              ("records", f"dataset={data.SHARED}")]
    for view, query in pages:
        browser.open(view, query)
        if view == "charts":
            browser.find("svg.chart")
        browser.picture(f"{view}-{name}")
        width = browser.run("return document.documentElement.scrollWidth - innerWidth")
        holds(width <= 0, f"{view} fits the width, and is not {width} px too wide")
    open_record(browser, f"{fixture.identity}:notes", "versions")
    browser.find(".history svg")
    browser.picture(f"record-{name}")
    browser.open("conflicts")
    if browser.all("table.rows tbody a"):
        browser.find("table.rows tbody a").click()
        browser.find("#keep-local")
        browser.picture(f"conflict-{name}")


@check
def a_01_wrong_tokens_open_nothing(browser: Browser, fixture: Fixture) -> None:
    """And are told so in the page, which shows nothing else."""
    browser.driver.get(browser.url)
    browser.find("#token").send_keys("wrong", Keys.ENTER)
    browser.sees("This token does not open the console.")
    browser.picture("sign-in-desktop")
    holds(not browser.find("main").text.count("Overview"), "no view is there")


@check
def a_02_the_api_has_no_way_around_the_session(browser: Browser, fixture: Fixture) -> None:
    """Not even with the hub's own token as a bearer's."""
    for path in ("overview", "datasets", "stream", "audit", "settings"):
        request = urllib.request.Request(f"{browser.url}api/{path}")
        request.add_header("authorization", f"Bearer {fixture.hub.token}")
        try:
            urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            holds(error.code == 401, f"{path} answers 401, not {error.code}")
        else:
            holds(False, f"{path} is refused")


@check
def b_sign_in_by_keyboard(browser: Browser, fixture: Fixture) -> None:
    """The cookie is seen by no script."""
    browser.sign_in(fixture.hub.token)
    holds(browser.run("return document.cookie") == "", "scripts see no cookie")
    cookie = browser.driver.get_cookie("tidemark-console")
    holds(cookie and cookie["httpOnly"] and cookie["sameSite"] == "Strict", "the cookie's marks")


@check
def c_every_view_on_a_desktop(browser: Browser, fixture: Fixture) -> None:
    """With its data."""
    look(browser, fixture, "desktop")


@check
def c_every_view_on_a_phone(browser: Browser, fixture: Fixture) -> None:
    """Nothing is wider than the phone."""
    browser.resize(PHONE)
    try:
        look(browser, fixture, "phone")
    finally:
        browser.resize(DESKTOP)


@check
def c_every_view_in_the_dark(browser: Browser, fixture: Fixture) -> None:
    """The ground is dark, and the text on it light."""
    browser.darken(True)
    try:
        look(browser, fixture, "dark")
        ground, text = browser.run(
            "const style = getComputedStyle(document.documentElement);"
            "return [style.backgroundColor, style.color]")
        light = [sum(int(part) for part in color[4:-1].split(",")) for color in (ground, text)]
        holds(light[0] < 150 < 500 < light[1], f"dark ground and light text: {ground}, {text}")
    finally:
        browser.darken(False)


@check
def d_identities_are_paged_and_found(browser: Browser, fixture: Fixture) -> None:
    """Fifty at first, then the rest, and one by the beginning of its id."""
    browser.open("identities")
    holds(len(browser.all("table.rows tbody tr")) == 50, "the first page has fifty")
    browser.find(".actions button").click()
    browser.until(lambda: len(browser.all("table.rows tbody tr")) == 60, "all sixty are there")
    browser.find("#search").send_keys(fixture.identity)
    browser.until(lambda: len(browser.all("table.rows tbody tr")) == 1, "one is found")
    holds(fixture.identity in browser.text(), "it is the one")


@check
def d_datasets_are_found_and_the_hubs_own_are_not(browser: Browser, fixture: Fixture) -> None:
    """By the beginning of a name and by a part of it."""
    browser.open("datasets")
    browser.sees(data.SHARED)
    holds("hub:" not in browser.text(), "the hub's own are not shown")
    browser.find("#part").send_keys("red-no")
    browser.until(lambda: len(browser.all("table.rows tbody tr")) == 1, "one is found")


@check
def d_datasets_are_sorted_by_the_hub(browser: Browser, fixture: Fixture) -> None:
    """By the head of a column, where the keyboard stays, and by the field."""
    browser.open("datasets")
    browser.sees(data.SHARED)
    browser.run("[...document.querySelectorAll('th button')]"
                ".find((one) => one.textContent === 'Operations').click()")
    sorted_by = "const head = document.querySelector('th[aria-sort]');"
    browser.until(
        lambda: browser.run(sorted_by + "return head && head.textContent === 'Operations'"
                            " && head.getAttribute('aria-sort') === 'descending'"),
        "sorted by operations, most first")
    holds(data.SHARED in browser.find("table.rows tbody tr").text, "the one with most is first")
    browser.until(
        lambda: browser.run("return document.activeElement.textContent === 'Operations'"),
        "the keyboard is in the head")
    holds(browser.run("return document.querySelector('#order').value") == "-count", "the field")


@check
def d_records_come_once_each_with_tombstones(browser: Browser, fixture: Fixture) -> None:
    """Over all pages."""
    shared(browser, "&prefix=page-&deleted=1")
    while more := [one for one in browser.all(".actions button") if one.is_displayed()]:
        count = len(browser.all("table.rows tbody tr"))
        more[0].click()
        browser.until(lambda: len(browser.all("table.rows tbody tr")) > count, "more rows")
    keys = [one.text for one in browser.all("table.rows tbody a")]
    holds(keys == [f"page-{number:04}" for number in range(230)], "each key once, in order")
    holds(browser.text().count("tombstone") == 1, "one tombstone")


@check
def e_hostile_keys_and_values_are_text(browser: Browser, fixture: Fixture) -> None:
    """Nothing of them becomes an element, and marks of direction are in the open."""
    for dataset in (data.SHARED, f"{fixture.identity}:notes"):
        browser.open("records", f"dataset={quoted(dataset)}&prefix={quoted('<')}")
        browser.sees("<script>")
        open_record(browser, dataset, "<")
        browser.sees(data.SCRIPT)
        holds(browser.run("return document.querySelectorAll('main script, main img').length") == 0,
              "no element came of it")
        holds("taken" not in browser.driver.title, "no script ran")
    browser.picture("hostile-script-desktop")
    open_record(browser, data.SHARED, "invoice")
    browser.sees("U+202E")
    browser.sees("U+2066")
    raw = browser.run("return document.getElementById('main').textContent.includes('\\u202e')")
    holds(not raw, "no mark of direction is left in the page")
    browser.picture("hostile-direction-desktop")


@check
def e_long_and_binary_values_are_bounded(browser: Browser, fixture: Fixture) -> None:
    """A mebibyte is shown in parts, and bytes that are no text as digits."""
    open_record(browser, data.SHARED, "long")
    browser.sees("the first 64.0 KiB of 1.0 MiB")
    holds(browser.run("return document.body.textContent.length") < 200_000, "a part is shown")
    browser.picture("hostile-long-desktop")
    shared(browser, "&sort=-key")
    browser.find("#order").send_keys("by key, falling")
    browser.sees("ff 00 c3 28")
    browser.sees("binary")


@check
def f_the_history_is_drawn(browser: Browser, fixture: Fixture) -> None:
    """A circle for each version, lines between them, and the same as a list."""
    open_record(browser, f"{fixture.identity}:notes", "versions")
    browser.find(".history svg")
    holds(len(browser.all(".history circle")) == 4, "four circles")
    holds(len(browser.all(".history path.edge")) == 3, "three lines")
    browser.sees("version 0")
    open_record(browser, data.SHARED, "news")
    browser.sees("of ada")


@check
def g_the_live_stream_moves(browser: Browser, fixture: Fixture) -> None:
    """What an app writes appears, as text."""
    browser.open("live")
    browser.until(lambda: browser.find("#live-state").text == "live", "the stream is open")
    fixture.hub.write(fixture.identity, fixture.key, "notes", {"live-1": "<b>first</b>"})
    browser.sees("live-1")
    fixture.hub.write(fixture.identity, fixture.key, "notes", {"live-2": "second"})
    browser.sees("live-2")
    browser.sees("<b>first</b>")
    holds(not browser.all("main b"), "it is text")
    for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
        browser.resize(size)
        browser.picture(f"live-moving-{name}")
    browser.resize(DESKTOP)


def notes(fixture: Fixture) -> dict[str, str | None]:
    """What the app sees."""
    return fixture.hub.records(fixture.identity, fixture.key, "notes")


@check
def h_an_edit_reaches_the_app(browser: Browser, fixture: Fixture) -> None:
    """Once it is confirmed, and is heard of by the API of apps."""
    open_record(browser, f"{fixture.identity}:notes", "monday")
    browser.find("#edit").click()
    field = browser.find("#edit-value")
    field.clear()
    field.send_keys("buy tea")
    browser.picture("edit-desktop")
    browser.find("#edit-save").click()
    holds(notes(fixture)["monday"] == "buy milk", "nothing is written before it is confirmed")
    browser.find("#edit-sure").click()
    browser.find("#edit-save").click()
    browser.sees("buy tea")
    holds(notes(fixture)["monday"] == "buy tea", "the app sees it")


@check
def h_a_new_record_and_its_deletion(browser: Browser, fixture: Fixture) -> None:
    """Both are seen by the app; what is not confirmed does not happen."""
    browser.open("records", f"dataset={quoted(fixture.identity)}:notes")
    browser.find("#add").click()
    browser.find("#edit-key").send_keys("console")
    browser.find("#edit-value").send_keys("written here")
    browser.find("#edit-sure").click()
    browser.find("#edit-save").click()
    browser.find("#delete")
    holds(notes(fixture).get("console") == "written here", "the app sees the new one")
    browser.find("#delete").click()
    browser.find("dialog button.plain").click()
    holds(notes(fixture).get("console") == "written here", "it was not confirmed")
    browser.find("#delete").click()
    browser.picture("confirm-desktop")
    browser.find("#confirm").click()
    browser.until(lambda: notes(fixture).get("console") is None, "the app sees that it is gone")


@check
def i_a_conflict_is_settled(browser: Browser, fixture: Fixture) -> None:
    """Three ways beside each other, and what was written takes their place."""
    browser.open("conflicts")
    browser.find("table.rows tbody a").click()
    browser.find("#keep-local")
    for text in ("first line, here again", "last, there", "last line"):
        browser.sees(text)
    holds(len(browser.all(".side")) == 3, "three sides")
    field = browser.find("#merged")
    field.clear()
    field.send_keys("title\nboth")
    browser.find("#settle-value").click()
    browser.find("#confirm").click()
    browser.find("#edit")
    browser.sees("both")
    browser.open("conflicts")
    browser.sees("No conflict waits")
    # The journal has it, and the one that a policy has settled.
    browser.find("#state").send_keys("settled")
    browser.sees("application")
    browser.sees("keepLocal")


@check
def j_a_device_is_revoked(browser: Browser, fixture: Fixture) -> None:
    """It was behind; then it is forgotten."""
    browser.open("devices")
    browser.sees("behind")
    holds("a-token-that-nobody-sees" not in browser.run(
        "return document.documentElement.outerHTML"), "its token is not shown")
    browser.find("button.revoke").click()
    browser.find("#confirm").click()
    browser.sees("No device")


@check
def j_replicas_are_told_with_their_lag(browser: Browser, fixture: Fixture) -> None:
    """The one that was not there lately is behind."""
    browser.open("replicas")
    browser.sees(data.SHARED)
    browser.sees("behind")


@check
def k_the_audit_has_it_all(browser: Browser, fixture: Fixture) -> None:
    """Each edit when it was asked for and when it was done, and no value."""
    browser.open("audit")
    for text in ("put", "delete", "resolve", "revoke", "done", "asked"):
        browser.sees(text)
    holds("buy tea" not in browser.text(), "no value is in it")
    lines = (fixture.hub.store / "console-audit.jsonl").read_text().splitlines()
    holds(len(lines) >= 10 and all(line.startswith("{") for line in lines), "the file has lines")


@check
def l_settings_have_no_secret(browser: Browser, fixture: Fixture) -> None:
    """Those in force, by their names."""
    browser.open("settings")
    browser.sees("recordsPerDatasetMax")
    for secret in (fixture.hub.token, fixture.hub.key[1]):
        holds(secret not in browser.run("return document.documentElement.outerHTML"), "no secret")


@check
def m_the_keyboard_is_enough(browser: Browser, fixture: Fixture) -> None:
    """The skip link, the menu by arrows, the rows by arrows, and Enter."""
    browser.driver.get(browser.url)
    browser.find("main .figure")
    # As if the page had just been reached: the next one by the tabulator is the first of all.
    browser.run("document.body.tabIndex = -1; document.body.focus()")
    browser.driver.find_element("tag name", "body").send_keys(Keys.TAB)
    holds(browser.run("return document.activeElement.id") == "skip", "the skip link is first")
    browser.press(Keys.ENTER)
    holds(browser.run("return document.activeElement.id") == "main", "it leads to the content")
    browser.run("document.querySelector('#views a').focus()")
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    holds(browser.run("return document.activeElement.dataset.view") == "datasets", "by arrows")
    ring = browser.run("return getComputedStyle(document.activeElement).outlineWidth")
    holds(ring != "0px", "the focus is seen")
    browser.press(Keys.ENTER)
    browser.sees(data.SHARED)
    browser.run("document.querySelector('tbody tr').focus()")
    browser.press(Keys.END, Keys.ENTER)
    browser.find("#add")


@check
def y_nothing_was_complained_about(browser: Browser, fixture: Fixture) -> None:
    """Neither by scripts nor by the policy, in all that came before."""
    problems = browser.problems()
    holds(not problems, f"the browser's console is empty: {problems[:5]}")


@check
def z_who_signs_out_is_out(browser: Browser, fixture: Fixture) -> None:
    """The page shows nothing any more, and the address does not help."""
    browser.find("#sign-out").click()
    browser.find("#token")
    browser.driver.get(browser.url + "#/audit")
    browser.find("#token")


def run(browser: Browser, fixture: Fixture, names: list[str]) -> list[str]:
    """Those that fail."""
    failed = []
    for name, function in sorted(CHECKS.items()):
        if names and not any(part in name for part in names + ["b_sign_in"]):
            continue
        started = time.monotonic()
        try:
            function(browser, fixture)
            print(f"ok      {name} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception:
            failed.append(name)
            print(f"not ok  {name}\n{traceback.format_exc()}", flush=True)
            browser.picture(f"failed-{name}")
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Reads the command line; the status is 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="The hub's console in a browser.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    parser.add_argument("pictures", type=Path, help="a directory for them, emptied before")
    parser.add_argument("names", nargs="*", help="only checks whose names hold one of these")
    options = parser.parse_args(arguments)
    shutil.rmtree(options.pictures, ignore_errors=True)
    options.pictures.mkdir(parents=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        fixture = data.make(options.binary, Path(directory))
        try:
            browser = Browser(fixture.hub.url, options.pictures)
            try:
                browser.resize(DESKTOP)
                failed = run(browser, fixture, options.names)
            finally:
                browser.quit()
            fixture.hub.stop()
        except BaseException:
            print(fixture.hub.log_end(), file=sys.stderr)
            raise
        finally:
            fixture.hub.kill()
    count = len(list(options.pictures.iterdir()))
    print(f"console: {len(CHECKS)} checks, {len(failed)} failed, {count} pictures "
          f"({time.monotonic() - started:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
