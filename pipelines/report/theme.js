"use strict";

// Figures have the colours of a light page; on a dark one each colour is replaced by its counterpart here. Whoever draws a
// figure does it with `drawThemed`, which draws it again when the page's scheme changes.
const DARK_COLOURS = {
  "white": "#131c2e", "#ffffff": "#131c2e",
  "#0f172a": "#e2e8f0", "#2a3f5f": "#e2e8f0", "#64748b": "#a8b5c7", "#334155": "#cbd5e1", "#94a3b8": "#7c8ba1",
  "#ebf0f8": "#334155", "#c8d4e3": "#334155", "#dfe8f3": "#334155", "#a2b1c6": "#475569",
  "#2563eb": "#60a5fa", "#059669": "#34d399", "#d97706": "#fbbf24", "#dc2626": "#f87171", "#7c3aed": "#a78bfa",
  "#0891b2": "#22d3ee", "#be185d": "#f472b6", "#65a30d": "#a3e635", "#475569": "#cbd5e1", "#b45309": "#fdba74",
  "#1d4ed8": "#93c5fd", "#0f766e": "#5eead4",
  "#e0f2fe": "#1e5a8a", "#38bdf8": "#38bdf8", "#f59e0b": "#f59e0b",
};
const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const drawnFigures = new Map();

function inDark(value) {
  if (typeof value === "string") return DARK_COLOURS[value.toLowerCase()] ?? value;
  if (Array.isArray(value)) return value.map(inDark);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inDark(part)]));
}

// plotly.js writes into what it draws, so it is given a copy.
function drawThemed(holder, data, layout, config) {
  drawnFigures.set(holder, [data, layout, config]);
  const figure = structuredClone({ data, layout });
  const shown = darkScheme.matches ? inDark(figure) : figure;
  return window.Plotly.react(holder, shown.data, shown.layout, config);
}

darkScheme.addEventListener("change", () => {
  for (const [holder, figure] of drawnFigures) drawThemed(holder, ...figure);
});
