/** Counts code points, not UTF-16 units: an emoji is one character. */
export function fits(text: string, max: number): boolean {
  if (text.length <= max) return true;
  return text.length <= 2 * max && [...text].length <= max;
}
