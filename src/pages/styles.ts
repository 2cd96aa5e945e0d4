export const COLORS_CSS = `
:root {
  color-scheme: light dark;
  --accent: #1d4ed8; --accent-strong: #1e40af; --on-accent: #ffffff; --focus: #1d4ed8;
  --page: #f3f4f7; --card: #ffffff; --ink: #10172a; --muted: #55607a; --line: #e3e7ee;
  --edge: #7b8598; --tint: #eef3ff; --note: #fff6db; --note-ink: #6b4300; --bad: #b42318;
  --good: #137a48;
}
@media (prefers-color-scheme: dark) {
  :root {
    --accent: #8fb0ff; --accent-strong: #b3c9ff; --on-accent: #0b1430; --focus: #a9c1ff;
    --page: #0b0f19; --card: #141a28; --ink: #edf1fa; --muted: #a3aec4; --line: #273044;
    --edge: #7d89a3; --tint: #1b2540; --note: #35290a; --note-ink: #ffdf9a; --bad: #ff9c92;
    --good: #6fdba5;
  }
}
`;

export const BASE_CSS = `${COLORS_CSS}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; min-height: 100vh; min-height: 100svh; display: flex; flex-direction: column;
  background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif;
}
.sheet { flex: 1; display: flex; flex-direction: column; }
main {
  flex: 1; width: 100%; background: var(--card); padding: 28px 24px 32px;
  display: flex; flex-direction: column; gap: 24px;
}
h1, h2, p, dl, dd, fieldset, legend { margin: 0; padding: 0; }
h1 { font-size: 24px; line-height: 1.25; letter-spacing: -0.015em; font-weight: 650; }
p { overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 3px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 3px; }
svg { display: block; flex: none; }
.muted { color: var(--muted); }
.small { font-size: 14px; }
.stack, .lines { display: flex; flex-direction: column; gap: 12px; }
.lines { gap: 4px; }
.banner {
  background: var(--note); color: var(--note-ink); padding: 10px 16px; text-align: center;
  font-size: 14px; font-weight: 550;
}
.shop { display: flex; align-items: center; gap: 12px; font-weight: 600; min-width: 0; }
.shop span:last-child { overflow-wrap: anywhere; }
.mark {
  flex: none; width: 40px; height: 40px; border-radius: 12px; background: var(--tint);
  color: var(--accent); display: grid; place-items: center; font-weight: 700;
}
/* A logo that is made for white has it in the dark, too. */
.logo {
  flex: none; width: auto; height: auto; max-width: 152px; max-height: 44px; border-radius: 8px;
}
@media (prefers-color-scheme: dark) {
  .logo { background: #ffffff; padding: 4px; max-height: 52px; max-width: 160px; }
}
.amount {
  font-size: clamp(38px, 11vw, 52px); line-height: 1.1; font-weight: 680; letter-spacing: -0.035em;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}
dl { border-top: 1px solid var(--line); }
dl > div {
  display: flex; align-items: baseline; justify-content: space-between; gap: 24px; padding: 14px 0;
  border-bottom: 1px solid var(--line);
}
dt { color: var(--muted); flex: none; }
dd { text-align: right; font-weight: 550; min-width: 0; overflow-wrap: anywhere; }
.method { display: flex; align-items: baseline; gap: 8px; }
.method svg { color: var(--accent); align-self: center; }
form { margin: 0; }
/* A merchant's color replaces those of the buttons. */
button, .button {
  display: block; width: 100%; min-height: 54px; padding: 14px 20px; border-radius: 14px;
  border: 1px solid var(--fill-edge, transparent); background: var(--fill, var(--accent));
  color: var(--on-fill, var(--on-accent));
  font: inherit; font-weight: 620; text-align: center; text-decoration: none; cursor: pointer;
}
button:hover, .button:hover { background: var(--fill-strong, var(--accent-strong)); }
button.plain, .button.plain {
  background: transparent; color: var(--ink); border-color: var(--edge);
}
button.quiet, .button.quiet {
  background: transparent; color: var(--muted); border-color: transparent; min-height: 44px;
  padding: 10px 16px;
}
button.plain:hover, .button.plain:hover, button.quiet:hover, .button.quiet:hover {
  background: var(--tint); color: var(--ink);
}
button[aria-busy='true'] { opacity: 0.75; cursor: progress; }
footer {
  background: var(--card); color: var(--muted); font-size: 14px; padding: 0 24px 28px;
  display: flex; flex-direction: column; gap: 8px; align-items: center; text-align: center;
}
.secure { display: flex; gap: 8px; align-items: center; justify-content: center; }
.secure span { text-align: start; }
.languages summary {
  display: inline-flex; align-items: center; gap: 8px; min-height: 44px; padding: 8px 14px;
  border-radius: 12px; list-style: none; cursor: pointer; text-decoration: underline;
  text-underline-offset: 3px;
}
.languages summary::-webkit-details-marker { display: none; }
.languages summary:hover { color: var(--ink); }
.languages ul {
  display: flex; flex-wrap: wrap; justify-content: center; margin: 0; padding: 0; list-style: none;
}
.languages a {
  display: flex; align-items: center; min-height: 44px; padding: 8px 12px; color: inherit;
}
.languages a:hover, .languages a[aria-current] { color: var(--ink); }
.languages a[aria-current] { font-weight: 620; text-decoration: none; }
.sign { width: 56px; height: 56px; border-radius: 50%; display: grid; place-items: center;
  background: var(--tint); color: var(--accent); }
.sign.good { color: var(--good); } .sign.bad { color: var(--bad); }
@media (min-width: 560px) {
  .sheet { justify-content: center; align-items: center; padding: 48px 24px; }
  main, footer { flex: none; max-width: 460px; }
  main {
    padding: 40px; border-radius: 24px; border: 1px solid var(--line);
    box-shadow: 0 30px 60px -36px rgb(16 23 42 / 0.3);
  }
  footer { background: none; padding: 20px 24px 0; }
}
@media (prefers-reduced-motion: no-preference) {
  button, .button { transition: background-color 120ms ease; }
}
`;

const COPY_CSS = `
.live { display: flex; flex-direction: column; gap: 24px; }
.all { user-select: all; -webkit-user-select: all; }
button[hidden] { display: none; }
button.slim { width: auto; min-height: 44px; padding: 8px 18px; }
.value {
  font: 550 16px/1.5 ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace;
  overflow-wrap: anywhere; min-width: 0;
}
.callout { background: var(--note); color: var(--note-ink); border-radius: 14px; padding: 14px 16px; }
.said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;

export const PAY_CSS = `${BASE_CSS}${COPY_CSS}
.fields > div { display: block; }
.fields dd {
  display: flex; align-items: center; justify-content: space-between; gap: 16px; text-align: start;
}
.fields button { flex: none; }
progress {
  appearance: none; display: block; width: 100%; height: 6px; border: 0; border-radius: 3px;
  overflow: hidden; background: var(--tint); color: var(--accent);
}
progress::-webkit-progress-bar { background: var(--tint); }
progress:indeterminate {
  background: linear-gradient(90deg, var(--tint), var(--accent), var(--tint)) 0 0 / 50% 100%;
}
progress:indeterminate::-webkit-progress-bar { background: transparent; }
progress:indeterminate::-moz-progress-bar { background: transparent; }
@media (prefers-reduced-motion: no-preference) {
  progress:indeterminate { animation: pass 1.4s linear infinite; }
}
@keyframes pass { from { background-position: 200% 0; } to { background-position: 0 0; } }
`;

/** QR code stays dark on light, because many scanners require it. */
export const CRYPTO_CSS = `${BASE_CSS}${COPY_CSS}
h2 { font-size: 16px; font-weight: 620; }
strong { font-weight: 620; }
.row { display: flex; align-items: center; justify-content: space-between; gap: 16px; }
.units { font-size: clamp(30px, 8.5vw, 40px); }
.units.long { font-size: clamp(19px, 5.6vw, 26px); line-height: 1.3; letter-spacing: -0.02em; }
.unit { font-size: 0.6em; letter-spacing: 0; color: var(--muted); }
.clock {
  display: flex; align-items: center; gap: 8px; margin-left: auto; white-space: nowrap;
  font-weight: 620; font-variant-numeric: tabular-nums;
}
.code {
  display: flex; justify-content: center; padding: 8px; border: 1px solid var(--line);
  border-radius: 18px; background: #ffffff;
}
.qr { width: min(100%, 248px); height: auto; }
details .stack { margin-top: 16px; }
.address { display: flex; flex-direction: column; align-items: flex-start; gap: 12px; }
.deposits { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
.deposits li { gap: 8px; padding: 14px 0; border-bottom: 1px solid var(--line); }
.transaction { font-size: 13px; font-weight: 400; }
.done { color: var(--good); font-weight: 600; }
meter {
  appearance: none; display: block; width: 100%; height: 6px; border: 0; border-radius: 3px;
  overflow: hidden; background: var(--tint);
}
meter::-webkit-meter-inner-element { border: 0; }
meter::-webkit-meter-bar { height: 6px; border: 0; border-radius: 3px; background: var(--tint); }
meter::-webkit-meter-optimum-value { border-radius: 3px; background: var(--accent); }
meter::-moz-meter-bar { border-radius: 3px; background: var(--accent); }
`;
