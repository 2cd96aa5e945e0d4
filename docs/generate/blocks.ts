const BLOCK = /(<!-- generated: ([\w-]+) -->\n)[\s\S]*?(<!-- end -->)/g;

/**
 * Puts each block between its markers.
 * @param blocks texts by the name in the marker
 * @throws Error when a block has no place in the text, or a place has no block
 */
export function fill(text: string, blocks: Readonly<Record<string, string>>): string {
  const missing = new Set(Object.keys(blocks));
  const filled = text.replace(BLOCK, (_, begin: string, name: string, end: string) => {
    const block = blocks[name];
    if (block === undefined) throw new Error(`Nothing makes the block "${name}".`);
    missing.delete(name);
    return `${begin}\n${block}\n\n${end}`;
  });
  if (missing.size > 0) throw new Error(`There is no place for ${[...missing].join(', ')}.`);
  return filled;
}
