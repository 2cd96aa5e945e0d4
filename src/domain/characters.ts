/**
 * Whether a text has at most so many characters. A character beyond the first 65,536, as most emoji,
 * is one, though JavaScript counts two.
 */
export function fits(text: string, max: number): boolean {
  if (text.length <= max) return true;
  return text.length <= 2 * max && [...text].length <= max;
}
