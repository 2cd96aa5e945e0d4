import { BASE_CSS } from './styles';

/** The QR code stays dark on light, because many scanners require it. */
export const CRYPTO_CSS = `${BASE_CSS}
.live { display: flex; flex-direction: column; gap: 24px; }
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
.all { user-select: all; -webkit-user-select: all; }
button[hidden] { display: none; }
button.slim { width: auto; min-height: 44px; padding: 8px 18px; }
.code {
  display: flex; justify-content: center; padding: 8px; border: 1px solid var(--line);
  border-radius: 18px; background: #ffffff;
}
.qr { width: min(100%, 248px); height: auto; }
.value {
  font: 550 16px/1.5 ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace;
  overflow-wrap: anywhere; min-width: 0;
}
.address { display: flex; flex-direction: column; align-items: flex-start; gap: 12px; }
.callout { background: var(--note); color: var(--note-ink); border-radius: 14px; padding: 14px 16px; }
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
.said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;
