export const REDACTED = '[redacted]';

/** A pattern could miss what is cut off. */
const TEXT_LENGTH_MAX = 300;

/** Digits of our ids are no numbers of others. */
const ID = /\b(?:[a-z]{2,6}_)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/.source;
/** Times to the second, which no date of birth has. */
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)/.source;
const ONLY_ID = new RegExp(`^${ID}$`);
const BETWEEN_IDS = new RegExp(`(${ID})`);
const BETWEEN_IDS_AND_TIMES = new RegExp(`(${ID}|${TIME})`);

const SEPARATOR = /[^\p{L}\p{N}]{0,2}/u.source;
const MONTH = /(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\p{L}*/u.source;
const STREET =
  /(?<!\p{L})(?:\p{L}{0,40}(?:stra(?:ß|ss)e|straat|str\.|weg|laan|gracht|plein|platz)|street|road|avenue|lane|rue|calle)/u
    .source;

interface Group {
  /** Matches wherever a pattern does, at less cost. */
  hint: RegExp;
  patterns: readonly RegExp[];
}

const E_MAIL: Group = {
  hint: /[@%]/,
  patterns: [/(?<![^\s@<>"'(),;:])[^\s@<>"'(),;:]+(?:@|%40)[^\s@<>"'(),;:]+/gi],
};

/** Found by prefix, or by the word before. */
const SECRETS: Group = {
  hint: /[_\s:=]/,
  patterns: [
    /\b(?:sk|pk|rk|ok|op|whsec|bearer|basic)[_\s]+[\w+/=~.-]{8,}/gi,
    /\b(?:pass\w*|pwd|secret|token|api[\s_-]?key|cookie|cvc|cvv|pin)\b["']?\s*[:=]\s*\S+/gi,
  ],
};

const WITH_DIGITS: Group = {
  hint: /\p{Nd}/u,
  patterns: [
    // IBANs, also in groups.
    /\b[A-Z]{2}\p{Nd}{2}(?:[ -]?[A-Z\p{Nd}]){11,30}\b/giu,
    // Secrets, by their form.
    /(?<![\w+/=~-])(?=[\w+/=~-]*\d)[\w+/=~-]{24,}/g,
    // Streets and postal codes.
    new RegExp(`(?<!\\p{L})(?:\\p{L}{1,30} )?${STREET}\\s*\\p{Nd}+\\s?\\p{L}?(?!\\p{L})`, 'giu'),
    new RegExp(`\\p{Nd}+\\p{L}?,? (?:\\p{L}{1,30} ){0,2}${STREET}(?!\\p{L})`, 'giu'),
    /\b\d{4} ?[A-Z]{2}\b|\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b|\b\d{5} +\p{Lu}\p{L}+/gu,
    // Cards, accounts, telephones, sort codes, dates of birth.
    new RegExp(`\\+?\\p{Nd}(?:${SEPARATOR}\\p{Nd}){5,}`, 'gu'),
    new RegExp(`\\p{Nd}{1,2}\\.? ?${MONTH},? \\p{Nd}{4}`, 'giu'),
    new RegExp(`${MONTH} \\p{Nd}{1,2}(?:st|nd|rd|th)?,? \\p{Nd}{4}`, 'giu'),
  ],
};

/** Patterns redact too much rather than too little. */
const GROUPS: readonly Group[] = [E_MAIL, SECRETS, WITH_DIGITS];

/** Successive words that begin with a capital. */
const NAMES: Group = {
  hint: / /,
  patterns: [
    /(?<!\p{L})\p{Lu}\p{L}+(?:['’-]\p{L}+)*(?: (?:van|von|de|der|den|da|di|la|le|el|al|bin))*(?: \p{Lu}(?:\p{L}+|\.)(?:['’-]\p{L}+)*)+/gu,
  ],
};

/** Hidden wherever they appear in one exchange. */
export type Hidden = readonly string[];

export function isId(text: string): boolean {
  return ONLY_ID.test(text);
}

/** @param hidden further texts to redact, such as values of other fields */
export function redactText(text: string, hidden: Hidden = []): string {
  return redactBetween(BETWEEN_IDS, text, [...GROUPS, NAMES], hidden);
}

/** Redacts a text of the service that may quote a merchant's. */
export function redactMessage(text: string, hidden: Hidden = []): string {
  return redactBetween(BETWEEN_IDS_AND_TIMES, text, GROUPS, hidden);
}

function redactBetween(
  stays: RegExp,
  text: string,
  groups: readonly Group[],
  hidden: Hidden,
): string {
  if (text.length > TEXT_LENGTH_MAX) return `${REDACTED} ${text.length} characters`;
  const redactPart = (part: string) => {
    const normal = part.normalize('NFKC');
    return cover(normal, [...findPatterns(normal, groups), ...findHidden(normal, hidden)]);
  };
  const parts = text.split(stays);
  return parts.map((part, at) => (at % 2 === 1 ? part : redactPart(part))).join('');
}

type Span = readonly [start: number, end: number];

/** Spans may overlap: one must not hide a part of another. */
function cover(text: string, spans: readonly Span[]): string {
  let shown = '';
  let done = 0;
  for (const [start, end] of [...spans].sort(([a], [b]) => a - b)) {
    if (start > done || (start === 0 && done === 0)) shown += text.slice(done, start) + REDACTED;
    done = Math.max(done, end);
  }
  return shown + text.slice(done);
}

function findPatterns(text: string, groups: readonly Group[]): Span[] {
  return groups
    .filter(({ hint }) => hint.test(text))
    .flatMap(({ patterns }) => patterns)
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(({ index, 0: match }) => [index, index + match.length] as const);
}

/** Shorter texts would be found within words by chance. */
const DISTINCT_LENGTH_MIN = 6;
const IN_WORD = /[\p{L}\p{N}]/u;

/** A regular expression would take longer to build than to use. */
function findHidden(text: string, hidden: Hidden): Span[] {
  const lower = text.toLowerCase();
  // Positions differ where that changes the length.
  if (lower.length !== text.length && hidden.length > 0) return [[0, text.length]];
  const spans: Span[] = [];
  for (const one of hidden) {
    const needle = one.normalize('NFKC').toLowerCase();
    for (let at = lower.indexOf(needle); at >= 0; at = lower.indexOf(needle, at + needle.length)) {
      const end = at + needle.length;
      const isPart = [text.charAt(at - 1), text.charAt(end)].some((next) => IN_WORD.test(next));
      if (needle.length >= DISTINCT_LENGTH_MIN || !isPart) spans.push([at, end]);
    }
  }
  return spans;
}
