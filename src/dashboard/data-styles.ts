/** Style of the pages that show what happened: timeline, figures, chart. */
export const DATA_CSS = `
.timeline { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; }
.timeline li {
  padding: 10px 0 10px 16px; border-left: 3px solid var(--line); display: flex;
  flex-direction: column; gap: 3px; min-width: 0;
}
.timeline li.good { border-color: var(--good); }
.timeline li.bad { border-color: var(--bad); }
.timeline-head { display: flex; gap: 4px 10px; flex-wrap: wrap; align-items: baseline; }
.timeline-head > :last-child { margin-left: auto; font-size: 13px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 20px; }
.figure { font-size: 26px; font-weight: 650; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.plainlist { margin: 0; padding-left: 20px; display: flex; flex-direction: column; gap: 6px; }
.plot { display: flex; flex-direction: column; gap: 6px; }
.chart { width: 100%; height: 180px; display: block; overflow: visible; }
.chart rect { fill: var(--accent); }
.chart rect:hover { fill: var(--accent-strong); }
.chart line { stroke: var(--line); vector-effect: non-scaling-stroke; }
.scale { display: flex; justify-content: space-between; color: var(--muted); font-size: 13px; }
.tabs { display: flex; gap: 4px; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
.tabs a { color: var(--ink); text-decoration: none; padding: 8px 12px; border-bottom: 3px solid transparent; }
.tabs a:hover { border-color: var(--line); }
.tabs a[aria-current] { color: var(--accent); border-color: var(--accent); font-weight: 620; }
.panel-head { display: flex; gap: 8px 16px; flex-wrap: wrap; align-items: baseline; }
.panel-head > :first-child { margin-right: auto; }
summary { cursor: pointer; font-weight: 550; }
details > * + * { margin-top: 10px; }
.buttons { display: flex; gap: 10px 20px; flex-wrap: wrap; align-items: end; }
.buttons .form { flex-direction: row; align-items: end; flex-wrap: wrap; }
.buttons .field { width: auto; min-width: 160px; }
td form button { min-height: 34px; padding: 4px 12px; }
`;
