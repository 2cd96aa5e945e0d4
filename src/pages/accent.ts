interface Scheme {
  card: Color;
  page: Color;
  ink: Color;
}

const SCHEMES = {
  light: { card: parse('#ffffff'), page: parse('#f3f4f7'), ink: parse('#000000') },
  dark: { card: parse('#141a28'), page: parse('#0b0f19'), ink: parse('#ffffff') },
} as const satisfies Record<string, Scheme>;

export type SchemeName = keyof typeof SCHEMES;

/** WCAG 2: texts, and parts of controls. */
const TEXT_CONTRAST_MIN = 4.5;
const EDGE_CONTRAST_MIN = 3;
/** Colors between the accent and the ink that are tried. */
const STEPS = 50;

type Color = readonly [red: number, green: number, blue: number];

interface Palette {
  fill: string;
  fillHover: string;
  onFill: string;
  edge: string;
  accent: string;
  tint: string;
}

/**
 * Any accent gets a text contrast of 4.5.
 * @param accent `#rrggbb`
 */
export function derivePalette(accent: string, scheme: SchemeName): Palette {
  const { card, page, ink } = SCHEMES[scheme];
  const fill = parse(accent);
  const [white, black] = [parse('#ffffff'), parse('#000000')];
  const onFill = contrast(fill, white) >= TEXT_CONTRAST_MIN ? white : black;
  const tint = mix(card, fill, 0.1);
  const isReadable = (color: Color) =>
    [card, page, tint].every((surface) => contrast(color, surface) >= TEXT_CONTRAST_MIN);
  const steps = Array.from({ length: STEPS }, (_, step) => mix(fill, ink, step / STEPS));
  const readable = steps.find(isReadable) ?? ink;
  return {
    fill: format(fill),
    // Away from the text on it, so that the contrast grows.
    fillHover: format(mix(fill, onFill === white ? black : white, 0.15)),
    onFill: format(onFill),
    edge: format(contrast(fill, card) >= EDGE_CONTRAST_MIN ? fill : readable),
    accent: format(readable),
    tint: format(tint),
  };
}

export function accentCss(accent: string): string {
  const variables = (scheme: SchemeName) => {
    const palette = derivePalette(accent, scheme);
    return (
      `--fill: ${palette.fill}; --fill-strong: ${palette.fillHover}; ` +
      `--on-fill: ${palette.onFill}; --fill-edge: ${palette.edge}; --accent: ${palette.accent}; ` +
      `--focus: ${palette.accent}; --tint: ${palette.tint};`
    );
  };
  return (
    `:root { ${variables('light')} }\n` +
    `@media (prefers-color-scheme: dark) { :root { ${variables('dark')} } }\n`
  );
}

function mix(from: Color, to: Color, share: number): Color {
  const channel = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * share);
  return [channel(0), channel(1), channel(2)];
}

/** @see https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
function contrast(one: Color, other: Color): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance([red, green, blue]: Color): number {
  const linear = (channel: number) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function parse(color: string): Color {
  const channel = (at: number) => Number.parseInt(color.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
}

function format(color: Color): string {
  return `#${color.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}
