"use strict";

// A page that updates by itself: its parts marked `data-live` are replaced by those of the page as it is now, and its
// pictures are drawn again. A hidden page, and one whose updates are paused, asks for nothing.
const MOST_PAUSE_MS = 60000;

function inUse(part) {
  const typedIn = [...part.querySelectorAll("input")].some((field) => field.value !== "");
  const focused = document.activeElement;
  const onControl = part.contains(focused) && focused.matches("a, button, input, summary");
  return typedIn || onControl || part.querySelector("details[open]") !== null;
}

// Regions that scroll keep their place, and the focus.
function replace(part, now) {
  const regions = [...part.querySelectorAll(".scrolling")];
  const places = regions.map((region) => [region.scrollLeft, region === document.activeElement]);
  part.replaceChildren(...now.childNodes);
  [...part.querySelectorAll(".scrolling")].forEach((region, number) => {
    const [left, focused] = places[number] ?? [0, false];
    region.scrollLeft = left;
    if (focused) region.focus({ preventScroll: true });
  });
}

// Returns whether all parts are as they are now: one that a person uses, with open details or text in a field, is kept.
function replaceParts(fresh) {
  let all = true;
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (now === null || now.innerHTML === part.dataset.was) continue;
    if (inUse(part)) {
      all = false;
    } else {
      part.dataset.was = now.innerHTML;
      replace(part, now);
    }
  }
  return all;
}

async function answerOf(address, accept) {
  const answer = await fetch(address, { headers: { Accept: accept } });
  if (answer.redirected) throw new Error("the session has ended; reload the page to log in");
  if (!answer.ok) throw new Error(`Airflow answered ${answer.status}`);
  return answer;
}

async function updateParts() {
  const answer = await answerOf(window.location.href, "text/html");
  return replaceParts(new DOMParser().parseFromString(await answer.text(), "text/html"));
}

async function updatePictures(place) {
  const content = await (await answerOf(place.dataset.livePictures, "application/json")).json();
  for (const holder of place.querySelectorAll("[data-picture]")) {
    const figure = content.figures[holder.dataset.picture];
    holder.closest("figure").hidden = figure === undefined;
    if (figure === undefined) continue;
    const layout = { ...figure.layout, autosize: true, margin: { ...figure.layout.margin, t: 20 } };
    delete layout.title;
    await drawThemed(holder, figure.data, layout, { displayModeBar: false, responsive: true });
  }
  document.getElementById("pictures-status").textContent = "The decisions below have the content of the pictures as text.";
  place.dataset.drawn = String(Number(place.dataset.drawn || "0") + 1);
}

class Updates {
  constructor(line) {
    this.said = line.querySelector("[data-updated]");
    this.button = line.querySelector("[data-pause]");
    this.everyMs = 1000 * Number(line.dataset.every);
    this.pictures = document.querySelector("[data-live-pictures]");
    this.failures = 0;
    this.paused = false;
    this.button.hidden = false;
    this.button.addEventListener("click", () => this.pause(!this.paused));
    document.addEventListener("visibilitychange", () => this.next(0));
  }

  pause(paused) {
    this.paused = paused;
    this.button.setAttribute("aria-pressed", String(paused));
    this.button.textContent = paused ? "Continue updates" : "Pause updates";
    this.next(0);
  }

  next(afterMs) {
    window.clearTimeout(this.timer);
    if (!this.paused && !document.hidden) this.timer = window.setTimeout(() => this.update(), afterMs);
  }

  async update() {
    try {
      const all = await updateParts();
      if (this.pictures !== null) await updatePictures(this.pictures);
      this.failures = 0;
      this.said.textContent = `Updated ${new Date().toISOString().slice(11, 19)} UTC, every ${this.everyMs / 1000} s${all ? "" : "; what you use is kept as it was"}.`;
    } catch (error) {
      this.failures += 1;
      this.said.textContent = `This page is not up to date: ${error.message}.`;
    }
    this.next(Math.min(this.everyMs * 2 ** this.failures, Math.max(MOST_PAUSE_MS, this.everyMs)));
  }
}

window.addEventListener("load", () => {
  const line = document.querySelector("[data-every]");
  if (line !== null) new Updates(line).next(0);
});
