/** @see docs/dashboard.md#brand */
export interface Brand {
  /** Absent: the name of the account. */
  display_name?: string;
  /** `#rrggbb`, lower case; absent: the service's own. */
  accent?: string;
  logo?: BrandLogo;
}

interface BrandLogo {
  /** SHA-256 of the stored image, shortened, hex. */
  hash: string;
  /** Pixels. */
  width: number;
  height: number;
}

export const DISPLAY_NAME_LENGTH_MAX = 60;

export const LOGO_LIMITS = {
  bytes: 128 * 1_024,
  /** Pixels; a small file may unpack to many. */
  side: 2_048,
} as const;

type Parsed<Value> = { ok: true; value: Value } | { ok: false; fault: string };

export function parseDisplayName(text: string): Parsed<string | undefined> {
  const name = text.replace(/\s+/g, ' ').trim();
  if (name === '') return { ok: true, value: undefined };
  if ([...name].length > DISPLAY_NAME_LENGTH_MAX) {
    return { ok: false, fault: `Use at most ${DISPLAY_NAME_LENGTH_MAX} characters.` };
  }
  // It could change the direction of text, or hide a part of it.
  if (/\p{C}/u.test(name)) return { ok: false, fault: 'It has an invisible character: type it.' };
  return { ok: true, value: name };
}

export function parseAccent(text: string): Parsed<string | undefined> {
  const color = text.trim().toLowerCase();
  if (color === '') return { ok: true, value: undefined };
  const [, digits] = /^#?([0-9a-f]{6})$/.exec(color) ?? [];
  if (digits === undefined) {
    return { ok: false, fault: 'Write it as # and six digits or letters a to f, such as #0a7c5a.' };
  }
  return { ok: true, value: `#${digits}` };
}
