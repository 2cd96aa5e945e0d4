import { encode } from 'uqr';

const MODULE_PIXELS = 4;

/** Draws dark on light in both color schemes because scanners require it. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  return (
    <svg
      class="qr"
      width={size * MODULE_PIXELS}
      height={size * MODULE_PIXELS}
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path fill="#ffffff" d={`M0 0h${size}v${size}H0z`} />
      <path fill="#000000" d={data.map(darkRuns).join('')} />
    </svg>
  );
}

function darkRuns(row: readonly boolean[], y: number): string {
  const runs = row
    .map((dark) => (dark ? '#' : ' '))
    .join('')
    .matchAll(/#+/g);
  return [...runs]
    .map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`)
    .join('');
}
