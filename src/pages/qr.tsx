import encodeQr from 'qr';

/** Light modules around a code that scanners need (ISO/IEC 18004). */
const QUIET = 4;

/**
 * Draws a QR code as SVG, on the server, so that it needs neither script nor another site.
 * @param label accessible name
 */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQr(text, 'raw', { ecc: 'medium', border: QUIET });
  const side = rows.length;
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${side} ${side}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path fill="#ffffff" d={`M0 0h${side}v${side}H0z`} />
      <path fill="#000000" d={rows.map(darkRuns).join('')} />
    </svg>
  );
}

/** Path of a row's dark modules, one rectangle for each run of them. */
function darkRuns(row: readonly boolean[], y: number): string {
  const runs = row
    .map((dark) => (dark ? '#' : ' '))
    .join('')
    .matchAll(/#+/g);
  return [...runs]
    .map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`)
    .join('');
}
