"""The style of a report: colours for light and dark, one column in narrow windows and several in wide ones."""

GRID_COLUMNS = 12
"""Columns of the grid; a figure spans several of them."""

GRID_FIGURES = {"m": 2, "l": 3, "w": 4}
"""Figures side by side at most, by the letter of a window's width."""

FIGURE_WIDTH, FIGURE_GAP, PAGE_MARGIN = 366, 12, 28
"""Least width of a figure, gap between two, and margin of the page (pixels)."""


def _grid_rules() -> str:
    """Return the rules for the width of figures in windows of each width."""
    rules = []
    for letter, most in GRID_FIGURES.items():
        spans = "".join(
            f".{letter}{GRID_COLUMNS // n}{{grid-column:span {GRID_COLUMNS // n}}}" for n in range(1, most + 1)
        )
        width = FIGURE_WIDTH * most + FIGURE_GAP * (most - 1) + PAGE_MARGIN
        rules.append(f"@media (min-width:{width}px){{{spans}}}\n")
    return "".join(rules)


_BASE = """
:root{color-scheme:light dark;--ink:#1b2530;--dim:#5b6773;--page:#f5f6f7;--card:#fff;--line:#dde2e7;--frame:#9aa5b0;
--c0:#2f6fb3;--c1:#d1733a;--c2:#3a9a6b;--c3:#8a5bb5;--bad:#c2352b;--good:#4fa36c;--water:#4f93c9;--earth:#b39a78;
--ideal:#10161c}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--dim:#9aa7b4;--page:#14181d;--card:#1d2329;--line:#323b44;
--frame:#5d6974;--c0:#6aa8e8;--c1:#ec9a66;--c2:#66c495;--c3:#b892de;--bad:#f0726a;--good:#5fae7c;--water:#5b9fd6;
--earth:#85704f;--ideal:#fff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,"DejaVu Sans",sans-serif}
main,header,nav{max-width:1720px;margin:0 auto;padding:0 14px}
header{padding-top:18px}
h1{font-size:1.5rem;margin:0 0 2px}h2{font-size:1.2rem;margin:28px 0 6px;border-bottom:2px solid var(--line);
padding-bottom:4px;overflow-wrap:anywhere}h3{font-size:1rem;margin:18px 0 6px}h4{font-size:.92rem;margin:0 0 2px}
p{margin:2px 0 8px;color:var(--dim);overflow-wrap:anywhere}
nav{margin-top:6px;display:flex;flex-wrap:wrap;gap:4px 16px}
a{color:var(--c0)}
:focus-visible{outline:3px solid var(--c1);outline-offset:2px}
.warnings{list-style:none;margin:8px 0;padding:0}
.warnings li{background:var(--card);border-left:5px solid var(--bad);margin:5px 0;padding:6px 10px;border-radius:3px;
overflow-wrap:anywhere}
.warnings li.note{border-color:var(--c0)}.warnings li.fine{border-color:var(--good)}
.warnings b{margin-right:6px}
.grid{display:grid;gap:12px;grid-template-columns:repeat(12,minmax(0,1fr));align-items:start}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:9px 9px 7px;min-width:0;
max-width:840px;grid-column:span 12}
figure svg{display:block;width:100%;height:auto}
figure svg svg{display:inline}
figcaption{font-size:.8rem;color:var(--dim);margin-top:3px;overflow-wrap:anywhere}
.keys{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.78rem;color:var(--dim);min-height:1.2em}
.keys i{display:inline-block;width:18px;height:0;border-top:3px solid;margin-right:5px;vertical-align:middle}
.keys i.c0{border-color:var(--c0)}.keys i.c1{border-color:var(--c1)}.keys i.c2{border-color:var(--c2)}
.keys i.c3{border-color:var(--c3)}.keys i.ideal{border-color:var(--ideal)}
.keys i.declared{border-top:2px dashed var(--ink)}.keys i.bad,.keys i.gap{border-color:var(--bad)}
.keys i.good{border-color:var(--good)}.keys i.water,.keys i.surface{border-color:var(--water)}
.keys i.earth{border-color:var(--earth)}
svg text{font-size:12px;fill:var(--ink);font-family:inherit}
svg text.title{fill:var(--dim)}svg text.tag{font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:3.5px}
svg path{fill:none;stroke-linejoin:round;stroke-linecap:round}
.grid path.grid,path.grid{stroke:var(--line);stroke-width:.7}
.frame{fill:none;stroke:var(--frame);stroke-width:1}
path.c0{stroke:var(--c0)}path.c1{stroke:var(--c1)}path.c2{stroke:var(--c2)}path.c3{stroke:var(--c3)}
path.c0,path.c1,path.c2,path.c3{stroke-width:1.3}
path.c0.band{fill:var(--c0)}path.c1.band{fill:var(--c1)}path.c2.band{fill:var(--c2)}path.c3.band{fill:var(--c3)}
path.band{fill-opacity:.75;stroke-width:.8}
path.ideal{stroke:var(--ideal);stroke-width:1}
path.declared{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:5 3.5;stroke-linecap:butt}
path.zero{stroke:var(--frame);stroke-width:1}
path.surface{stroke:var(--water);stroke-width:2}
path.earth{fill:var(--earth);fill-opacity:.85;stroke:var(--earth);stroke-width:1}
path.span{fill:var(--water);fill-opacity:.22}
.empty{fill:var(--line)}
path.good{fill:var(--good)}path.bad{fill:var(--bad)}path.water{fill:var(--water)}
path.casing{stroke:#fff;stroke-width:5;stroke-opacity:.75}path.track{stroke-width:2.6}
path.gap{stroke:#e0241b;stroke-width:6;stroke-opacity:.8}
.start{fill:#fff;stroke:#10161c;stroke-width:1.8}.end{fill:#10161c;stroke:#fff;stroke-width:1.6}
image.pixels{image-rendering:pixelated}
.scroll{overflow-x:auto;margin:4px 0 12px}
table{border-collapse:collapse;font-size:.84rem}
th,td{padding:2px 12px 2px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th[scope=row],thead th:first-child{text-align:left}thead th{color:var(--dim);font-weight:500}
table.cells th{text-align:center;padding-right:8px}table.cells td{padding-right:8px}
tr.bad td,tr.bad th{color:var(--bad);font-weight:600}
details{margin:12px 0}summary{cursor:pointer;padding:4px 0;color:var(--c0)}
@media print{body{background:#fff}figure{break-inside:avoid}nav{display:none}}
"""

CSS = _BASE + _grid_rules()
"""The style sheet."""
