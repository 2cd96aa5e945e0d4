/** Control and direction characters: a name must not move the cursor or reorder a line. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]+/gu;

/** Makes one line of a text. */
export function sanitize(text: string): string {
  return text.replace(/[\t\r\n]+/g, ' ').replace(UNPRINTABLE, '');
}

/** Quotes a text for Markdown, as one line, in which nothing is markup or a link. */
export function quoteMarkdown(text: string): string {
  return `\`${sanitize(text).replaceAll('`', "'")}\``;
}

/** Writes JSON in which a text is what it was, and a terminal obeys none of it. */
export function formatJson(value: unknown, indent?: number): string {
  const toEscape = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indent).replace(
    /[\x7f-\x9f\p{Bidi_Control}\u2028\u2029]/gu,
    toEscape,
  );
}

/** Makes each line of a text printable. */
export function sanitizeLines(text: string): string {
  return text.split('\n').map(sanitize).join('\n');
}

export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
