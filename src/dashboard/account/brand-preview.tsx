import { derivePalette, type SchemeName } from '../../pages/accent';
import { logoPath } from '../../pages/brand';
import type { ShownBrand } from '../../service/brand/brand';

const CARDS = {
  light: { name: 'On a light page', card: '#ffffff', ink: '#10172a' },
  dark: { name: 'On a dark page', card: '#141a28', ink: '#edf1fa' },
} as const satisfies Record<SchemeName, { name: string; card: string; ink: string }>;

/** Equals the accent in `styles.ts`. */
const OWN_ACCENT = '#1d4ed8';

/** Draws the brand on a page of each scheme, since no style may be inline. */
export function BrandPreview({ brand }: { brand: ShownBrand }) {
  return (
    <div class="previews">
      {(['light', 'dark'] as const).map((scheme) => (
        <div key={scheme}>
          <Card brand={brand} scheme={scheme} />
          <p class="muted small">{CARDS[scheme].name}</p>
        </div>
      ))}
    </div>
  );
}

const LOGO_SIDE = 40;

function Card({ brand, scheme }: { brand: ShownBrand; scheme: SchemeName }) {
  const { name, card, ink } = CARDS[scheme];
  const { fill, onFill, edge, accent, tint } = derivePalette(brand.accent ?? OWN_ACCENT, scheme);
  const [letter = '·'] = [...brand.name.trim().toUpperCase()];
  return (
    <svg
      viewBox="0 0 300 176"
      width="300"
      height="176"
      role="img"
      aria-label={`${name}: ${brand.name}`}
      font-size="15"
      text-anchor="middle"
    >
      <rect x="0.5" y="0.5" width="299" height="175" rx="14" fill={card} stroke="#7b8598" />
      {brand.logo === undefined ? (
        <>
          <rect x="20" y="20" width={LOGO_SIDE} height={LOGO_SIDE} rx="12" fill={tint} />
          <text x="40" y="46" fill={accent} font-size="18" font-weight="700">
            {letter}
          </text>
        </>
      ) : (
        <>
          {scheme === 'dark' && <rect x="16" y="16" width="88" height="48" rx="8" fill="#ffffff" />}
          <image
            href={logoPath(brand.logo.hash)}
            x="20"
            y="20"
            width="80"
            height={LOGO_SIDE}
            preserveAspectRatio={scheme === 'dark' ? 'xMidYMid' : 'xMinYMid'}
          />
        </>
      )}
      <text x={brand.logo === undefined ? 72 : 116} y="46" fill={ink} text-anchor="start">
        {shorten(brand.name)}
      </text>
      <rect x="20" y="84" width="260" height="44" rx="12" fill={fill} stroke={edge} />
      <text x="150" y="111" fill={onFill} font-weight="600">
        Continue
      </text>
      <text x="150" y="156" fill={accent} text-decoration="underline">
        Link
      </text>
    </svg>
  );
}

const NAME_LENGTH_MAX = 20;

function shorten(name: string): string {
  const letters = [...name];
  return letters.length <= NAME_LENGTH_MAX
    ? name
    : `${letters.slice(0, NAME_LENGTH_MAX - 1).join('')}…`;
}
