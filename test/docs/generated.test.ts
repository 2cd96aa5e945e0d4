import { fill } from '../../docs/generate/blocks';
import { blocksByPage } from '../../docs/generate/pages';
import { textOf } from './pages';

const PAGES = Object.entries(blocksByPage());

test.each(PAGES)('%s says what the code says: else run `npm run docs`', (page, blocks) => {
  expect(textOf(page)).toBe(fill(textOf(page), blocks));
});

test('every list that the code makes has something in it', () => {
  for (const [, blocks] of PAGES) {
    for (const block of Object.values(blocks)) expect(block.length).toBeGreaterThan(40);
  }
});

describe('a block', () => {
  const page = 'a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n';

  test('is replaced between its markers, and the rest stays', () => {
    const filled = 'a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb\n';
    expect(fill(page, { x: 'new' })).toBe(filled);
    expect(fill(filled, { x: 'new' })).toBe(filled);
  });

  test('without a place, and a place without a block, are faults', () => {
    expect(() => fill(page, { x: 'new', y: 'new' })).toThrow('no place for y');
    expect(() => fill(page, {})).toThrow('Nothing makes the block "x"');
  });
});
