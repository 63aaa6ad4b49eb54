"use strict";

// Airflow shows the pages in a frame that can neither open tabs nor navigate its parent. Pages of Airflow are opened by
// Airflow's own router, through its history; links to other sites say that they need a tab.
const isFramed = window.parent !== window;

// On the document, before it has any link, so that every visible link works.
if (isFramed) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (link === null) return;
    event.preventDefault();
    window.parent.history.pushState(null, "", link.href);
    window.parent.dispatchEvent(new PopStateEvent("popstate"));
  });
}

function explainLinksToElsewhere() {
  for (const link of document.querySelectorAll("a[data-outside]")) {
    const note = document.createElement("span");
    note.className = "aside";
    note.textContent = "(opens from \"Sluice plans in a new tab\"; Airflow's frame cannot open other sites)";
    link.after(" ", note);
  }
}

// A picture's title stands above it as a heading, so that it can wrap.
function draw(holder, figure) {
  const layout = { ...figure.layout, autosize: true };
  delete layout.title;
  delete layout.width;
  layout.margin = { ...layout.margin, t: 30 };
  return drawThemed(holder, figure.data, layout, { displayModeBar: false, responsive: true });
}

async function drawPictures(place) {
  const status = document.getElementById("pictures-status");
  status.textContent = "Drawing pictures.";
  try {
    const answer = await fetch(place.dataset.pictures, { headers: { Accept: "application/json" } });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.detail);
    for (const holder of place.querySelectorAll("[data-picture]")) {
      const figure = content.figures[holder.dataset.picture];
      if (figure === undefined) holder.closest("figure").remove();
      else await draw(holder, figure);
    }
    status.textContent = place.dataset.described;
    place.dataset.drawn = "yes";
  } catch (error) {
    status.textContent = `The pictures cannot be shown: ${error.message}`;
    place.remove();
  }
}

document.addEventListener("DOMContentLoaded", () => {
  if (isFramed) explainLinksToElsewhere();
});
window.addEventListener("load", () => {
  const place = document.querySelector("[data-pictures]");
  if (place !== null) drawPictures(place);
});
