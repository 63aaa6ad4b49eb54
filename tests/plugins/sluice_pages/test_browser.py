"""The pages in headless Chromium, as people use them; screenshots are left in `.sluice/screenshots`."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from autopilots.records import BUSY_JOB
from pipelines.control.files import AutopilotFiles
from pipelines.store.workspace import Workspace
from workspaces.plan_pages import DAMAGED_JOB, JOB, PASSWORD, PATIENCE_S, SCRIPT, Server

pytestmark = pytest.mark.slow

WIDTHS = (1280, 390)
PAGES = {
    "jobs": "/sluice/",
    "versions": f"/sluice/jobs/{JOB}/versions",
    "plan": f"/sluice/jobs/{JOB}/versions/2",
    "operate": f"/sluice/jobs/{JOB}/operate?version=1",
    "difference": f"/sluice/jobs/{JOB}/difference?before=1&after=2",
    "damaged": f"/sluice/jobs/{DAMAGED_JOB}/versions",
    "autopilots": "/sluice/autopilots",
    "autopilot": f"/sluice/jobs/{BUSY_JOB}/autopilot",
    "calendar": f"/sluice/jobs/{JOB}/calendar",
    "not-found": "/sluice/jobs/%3Cscript%3E/versions",
}
PICTURES = 6
SCHEMES: dict[Literal["light", "dark"], str] = {"light": "rgb(248, 250, 252)", "dark": "rgb(11, 18, 32)"}
"""Schemes of colours, and the colour of the page in each."""
PAPERS = {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 28, 46)"}
"""The colour that pictures have in each, that of the cards around them."""
TEXTS = {"light": "rgb(15, 23, 42)", "dark": "rgb(226, 232, 240)"}
FITS = "boxes => boxes.map(box => box.scrollWidth <= box.clientWidth)"
"""Whether tables that need not be scrolled sideways are not."""


@pytest.fixture(scope="module")
def logged_in(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """A browser whose person asked for a plan, was led to Airflow's login page, and logged in there."""
    context = browser.new_context(base_url=server.url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_S)
    expect.set_options(timeout=1000 * PATIENCE_S)
    page = context.new_page()
    page.goto(PAGES["difference"])
    assert "/auth/login" in page.url
    page.get_by_label("Username").fill("reader")
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("button[type=submit], input[type=submit]").first.click()
    page.wait_for_url(f"**{PAGES['difference']}")
    expect(page.locator("h1")).to_have_text(f"{JOB}: version 1 to 2")
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    """A page; any error in its console, including scripts and styles blocked by its own policy, fails the test."""
    page = logged_in.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    page.close()
    assert [text for text in complaints if "404 (Not Found)" not in text] == []


def _open(page: Page, name: str) -> None:
    page.goto(PAGES[name])
    if name in ("plan", "calendar"):
        page.wait_for_selector("[data-pictures][data-drawn=yes]")
    if name == "autopilot":
        page.wait_for_selector("[data-live-pictures][data-drawn]")


def _problems(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_are_accessible_and_complain_of_nothing(page: Page, width: int, root: Path) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for name in PAGES:
        _open(page, name)
        for scheme, background in SCHEMES.items():
            page.emulate_media(color_scheme=scheme)
            picture = root / ".sluice" / "screenshots" / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=picture, full_page=True)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert all(page.locator(".scrolling:has(table)").evaluate_all(FITS)), name
            assert _problems(page) == [], f"{name}, {scheme}"


@pytest.mark.parametrize(("name", "picture"), [("plan", "capacity"), ("calendar", "schedule")])
def test_pictures_follow_the_colours_of_the_page(page: Page, name: str, picture: str) -> None:
    _open(page, name)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        paper = page.locator(f"[data-picture={picture}] .main-svg").first
        expect(paper).to_have_css("background-color", PAPERS[scheme])
        expect(page.locator(f"[data-picture={picture}] .xtick text").first).to_have_css("fill", TEXTS[scheme])


def test_the_page_of_a_job_leads_to_its_calendar_and_the_picture_is_described(page: Page) -> None:
    _open(page, "versions")
    page.get_by_role("link", name="Calendar", exact=True).click()
    expect(page.locator("h1")).to_have_text(f"{JOB}: calendar")
    expect(page.locator("#pictures-status")).to_have_text("The table below has the rates that are planned for as text.")
    expect(page.locator("[data-picture=schedule]")).to_contain_text("time in Europe/Berlin")
    assert page.title() == f"{JOB}, calendar - Sluice plans"


def test_a_plan_shows_the_pictures_of_its_report(page: Page) -> None:
    _open(page, "plan")
    pictures = page.locator(".picture")
    assert pictures.count() == PICTURES
    assert all(picture.locator(".main-svg").count() for picture in pictures.all())
    expect(page.locator("[data-picture=dataflow]")).to_contain_text("source")
    drawn = page.locator("[data-picture=placement]").bounding_box()
    assert drawn is not None and drawn["height"] > 300


def test_the_page_of_an_autopilot_updates_itself_until_it_is_paused(page: Page, folder: Path) -> None:
    _open(page, "autopilot")
    files = AutopilotFiles(Workspace(folder), BUSY_JOB)
    state = files.state()
    assert state is not None and state.newest is not None
    newest = state.newest.model_copy(update={"reason": "Something new."})
    files.keep_state(state.model_copy(update={"newest": newest, "beat_at": datetime.now(UTC)}))
    expect(page.locator("main")).to_contain_text("Something new.")
    page.get_by_role("button", name="Pause updates").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(6_000)  # an update, if it were not paused
    assert asked == []
    assert page.locator(".picture .main-svg").count() >= 4


def test_two_versions_are_chosen_by_a_form(page: Page) -> None:
    _open(page, "versions")
    page.get_by_label("From version").select_option("2")
    page.get_by_label("to version", exact=True).select_option("1")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text(f"{JOB}: version 2 to 1")
    assert page.url.endswith(f"/jobs/{JOB}/difference?before=2&after=1")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(page: Page) -> None:
    _open(page, "jobs")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reached = []
    link = page.get_by_role("link", name=JOB, exact=True)
    while not link.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        assert len(reached) < 10, reached
    # The open question comes first, then the search, then the table, which scrolls by keyboard.
    assert reached[0].startswith("Apply the plan?") and reached[1:4] == ["search", "state", "Show"]
    assert link.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(f"{JOB}: versions of its plan")


def test_jobs_are_searched_by_name_and_state(page: Page) -> None:
    _open(page, "jobs")
    page.get_by_label("Job", exact=True).fill("Q1 nexmark")
    page.get_by_label("State").select_option("drifted")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody th")).to_have_text(re.compile(JOB))
    expect(page.locator("main")).to_contain_text("1 of 2 jobs")
    page.get_by_label("State").select_option("unchecked")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("No job has that name and state.")
    expect(page.get_by_label("Job", exact=True)).to_have_value("Q1 nexmark")


def test_a_job_named_like_a_script_is_text(page: Page) -> None:
    page.goto(PAGES["not-found"])
    expect(page.locator("main")).to_contain_text("There is no plan of a job named '<script>'.")
    page.goto(f"/sluice/jobs/{DAMAGED_JOB}/versions/1")
    expect(page.locator(".reasons")).to_contain_text(SCRIPT)
    assert page.title() == f"{DAMAGED_JOB}, plan 1 - Sluice plans"


def test_airflow_shows_the_pages_in_its_frame_and_follows_links_to_its_own(
    logged_in: BrowserContext, root: Path
) -> None:
    page = logged_in.new_page()  # Airflow's own pages may complain
    page.goto("/plugin/sluice-plans")
    frame = page.frame_locator("iframe[title='Sluice plans']")
    frame.get_by_role("link", name="version 2", exact=True).click()
    expect(frame.locator("h1")).to_have_text(f"{JOB}, plan 2")
    expect(frame.locator("[data-pictures]")).to_have_attribute("data-drawn", "yes")  # until then the link below moves
    page.screenshot(path=root / ".sluice" / "screenshots" / "in-airflow.png")
    frame.get_by_role("link", name=re.compile("^replan, manual__")).click()
    page.wait_for_url("**/dags/replan/runs/**")
    page.close()
