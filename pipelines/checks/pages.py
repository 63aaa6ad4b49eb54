"""Data Docs without a network.

Great Expectations' pages load styles, scripts and pictures from seven servers, and its index is drawn by one of those
scripts. Here every reference to a server is removed, a small style sheet is added, collapsed parts are expanded, and the
index is replaced by a plain list.
"""

import html
import re
from pathlib import Path
from typing import Final

_SCRIPTS: Final = re.compile(r"<script\b.*?</script>", re.DOTALL)
_EXTERNAL: Final = re.compile(r"""<(?:link|img|source)\b[^>]*?(?:href|src)\s*=\s*["'](?:https?:)?//[^>]*>""", re.DOTALL)
_EXTERNAL_IMAGE: Final = re.compile(r"url\(\s*['\"]?https?:[^)]*\)")
_EVENTS: Final = re.compile(r"""\s+on\w+\s*=\s*("[^"]*"|'[^']*')""")
_ADVERTISING: Final = re.compile(r"<footer\b.*?</footer>", re.DOTALL)
_FAILED: Final = re.compile(r'Status:</span>\s*<i class="fas fa-times')
_TITLES: Final = re.compile(r"<title>.*?</title>", re.DOTALL)
"""Great Expectations gives every page two titles: its own name, and nothing."""
_STYLE: Final = """
body{font:14px/1.5 system-ui,sans-serif;color:#212529;margin:0}
h4,h5,h6,.h6{margin:0 0 .3em;font-size:1.05em;font-weight:600} a{color:#0b5ed7} .lead{color:#6c757d}
.navbar-brand,.btn-group,.btn-group-toggle,thead[hidden]{display:none}
.breadcrumb{display:flex;list-style:none;padding:.6em 1.2em;margin:0;background:#f1f3f5}
.breadcrumb-item+.breadcrumb-item::before{content:"/";padding:0 .5em}
.container-fluid{padding:.4em 1.2em} .row{display:flex;flex-wrap:wrap} .row>[class*=col-12]{width:100%}
.row>.col-lg-2{width:16%;min-width:12em} .row>.col-lg-10{flex:1;min-width:0}
.sticky{position:sticky;top:0} .card{border:1px solid #dee2e6;border-radius:4px;margin:.5em 0}
.card-header{background:#f1f3f5;padding:.4em .7em} .card-body{padding:.5em .7em}
.sticky .card:first-child:not(:last-child){display:none}
.nav{list-style:none;margin:0;padding:0} .nav-link{text-decoration:none}
.alert{background:#e9ecef;border-radius:4px;padding:.5em .8em;margin:.5em 0}
.table,.table-sm{border-collapse:collapse;width:100%} td,th{border:1px solid #dee2e6;padding:.3em .5em;text-align:left}
td{vertical-align:top} pre{white-space:pre-wrap;margin:0} .show-scrollbars{max-height:20em;overflow:auto}
.badge{background:#6c757d;color:#fff;border-radius:3px;padding:.1em .4em;font-size:.9em} .badge-danger{background:#c92a2a}
.text-danger{color:#c92a2a} .text-success{color:#2b8a3e} .text-warning{color:#a66a00}
.fas{font-style:normal} .fa-times::before{content:"\\2717"} .fa-check-circle::before{content:"\\2713"}
.fa-exclamation-triangle::before{content:"\\26a0"} .fa-comment::before{content:"\\270e"}
.cooltip .top{display:none} a[data-toggle=collapse]{display:none} .collapse{display:block}
.failed{color:#c92a2a;font-weight:600} .passed{color:#2b8a3e;font-weight:600} main{padding:1em 1.2em;max-width:60em}
"""


def offline_site(folder: Path) -> dict[str, bytes]:
    """The pages of a site that Great Expectations built in `folder`: relative path -> HTML, `index.html` among them."""
    built = {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.html"))}
    pages = {path: offline_page(text, _title(path)) for path, text in built.items() if path != "index.html"}
    return {name: text.encode() for name, text in {"index.html": _index(pages), **pages}.items()}


def offline_page(page: str, title: str) -> str:
    """The page without anything that a browser would fetch, with a title of its own."""
    for unwanted in (_SCRIPTS, _ADVERTISING, _EXTERNAL, _EVENTS):
        page = unwanted.sub("", page)
    page = _TITLES.sub("", _EXTERNAL_IMAGE.sub("none", page)).replace("<html>", '<html lang="en">', 1)
    return page.replace("</head>", f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>", 1)


def _title(path: str) -> str:
    """`explored: results - Data Docs`, from the path of a page."""
    if path.startswith("validations/"):
        return f"{Path(path).parts[1]}: results - Data Docs"
    return f"{Path(path).stem}: rules - Data Docs"


def _index(pages: dict[str, str]) -> str:
    results = "".join(_result_line(path, text) for path, text in pages.items() if path.startswith("validations/"))
    suites = "".join(_line(path, Path(path).stem) for path in pages if path.startswith("expectations/"))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><title>Data Docs</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main><h1>Data Docs</h1><h2>Results</h2><ul>{results}</ul>"
        f"<h2>Rules</h2><ul>{suites}</ul></main></body></html>"
    )


def _result_line(path: str, page: str) -> str:
    status = "failed" if _FAILED.search(page) else "passed"
    return _line(path, Path(path).parts[1], f' <span class="{status}">{status}</span>')


def _line(path: str, name: str, after: str = "") -> str:
    return f'<li><a href="{html.escape(path, quote=True)}">{html.escape(name)}</a>{after}</li>'
