import fc from 'fast-check';
import { accentCss, derivePalette } from '../../../src/pages/accent';
import { COLORS_CSS } from '../../../src/pages/styles';

/** Computes the contrast by the formula of WCAG 2, independently of the product. */
function contrast(one: string, other: string): number {
  const [a = 0, b = 0] = [one, other].map((color) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const schemes = [
  ['light', '#ffffff', '#f3f4f7'],
  ['dark', '#141a28', '#0b0f19'],
] as const;

const anyColor = fc
  .integer({ min: 0, max: 0xffffff })
  .map((value) => `#${value.toString(16).padStart(6, '0')}`);

test.each(schemes)('the %s scheme has the card and page of the style sheet', (_, card, page) => {
  expect(COLORS_CSS).toContain(`--page: ${page}; --card: ${card};`);
});

test.each(schemes)('every accent color is readable in the %s scheme', (scheme, card, page) => {
  fc.assert(
    fc.property(anyColor, (color) => {
      const { fill, fillHover, onFill, edge, accent, tint } = derivePalette(color, scheme);
      expect(fill).toBe(color);
      expect(contrast(onFill, fill)).toBeGreaterThanOrEqual(4.5);
      expect(contrast(onFill, fillHover)).toBeGreaterThanOrEqual(4.5);
      expect(contrast(edge, card)).toBeGreaterThanOrEqual(3);
      for (const surface of [card, page, tint]) {
        expect(contrast(accent, surface)).toBeGreaterThanOrEqual(4.5);
      }
    }),
    { examples: [['#ffffff'], ['#000000'], ['#ffff00'], ['#767676'], ['#777777'], ['#141a28']] },
  );
});

test('a readable accent color stays the same, and its edge too', () => {
  expect(derivePalette('#0a5c45', 'light')).toMatchObject({
    accent: '#0a5c45',
    edge: '#0a5c45',
    onFill: '#ffffff',
  });
  expect(derivePalette('#ffd400', 'light')).toMatchObject({ fill: '#ffd400', onFill: '#000000' });
});

test('the style sheet of an accent sets only colors', () => {
  expect(accentCss('#ff6600')).toMatch(
    /^:root \{( --[a-z-]+: #[0-9a-f]{6};)+ \}\n@media \(prefers-color-scheme: dark\) \{ :root \{( --[a-z-]+: #[0-9a-f]{6};)+ \} \}\n$/,
  );
});
