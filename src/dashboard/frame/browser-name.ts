import { UNKNOWN_BROWSER } from '../../service/merchants/team/sessions';

/** Most specific first: Edge also says Chrome and Safari. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['FxiOS/', 'Firefox'],
  ['CriOS/', 'Chrome'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const;

const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Macintosh', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** Our own words, never what it sent: `Firefox on Windows`. */
export function nameBrowser(userAgent: string): string {
  const find = (names: typeof BROWSERS | typeof SYSTEMS) =>
    names.find(([word]) => userAgent.includes(word))?.[1];
  const browser = find(BROWSERS) ?? UNKNOWN_BROWSER;
  const system = find(SYSTEMS);
  return system === undefined ? browser : `${browser} on ${system}`;
}
