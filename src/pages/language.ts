import type { Context } from 'koa';
import { decimalMoney, formatMoney } from '../domain/money/money';
import { pageCookie } from './browser';
import { isLanguageCode, type LanguageCode, TEXTS } from './texts';
import type { Texts } from './texts/texts';

export interface PageLanguage {
  code: LanguageCode;
  locale: string;
  /** BCP 47 with the browser's region, for `Intl`: `en-GB` writes the day before the month. */
  regional: string;
  texts: Texts;
  /** Empty: that in the address bar. */
  path: string;
}

export type LanguageChooser = ReturnType<typeof languageChooser>;

const CANCEL = '/cancel';
const A_WEEK_S = 7 * 86_400;

/**
 * A cookie stores the choice, so that it is the same after the bank.
 * @see docs/api.md#the-payers-language
 */
export function languageChooser(publicUrl: string) {
  const cookie = pageCookie(publicUrl, {
    prefix: '__Secure-',
    name: 'pay_language',
    attributes: `Path=/pay; Max-Age=${A_WEEK_S}`,
  });
  return (ctx: Context, country: string | null = null): PageLanguage => {
    const chosen = ctx.query['lang'];
    const isChosen = typeof chosen === 'string' && isLanguageCode(chosen);
    if (isChosen) cookie.append(ctx, chosen);
    const earlier = cookie.read(ctx) ?? '';
    const code = isChosen ? chosen : isLanguageCode(earlier) ? earlier : negotiate(ctx, country);
    // The answer to a cancellation has an address that only a POST reaches.
    const path = ctx.path.endsWith(CANCEL) ? ctx.path.slice(0, -CANCEL.length) : '';
    const tags = ctx.acceptsLanguages().map((tag) => tag.split('-'));
    const [, region = ''] = tags.find(([name]) => name?.toLowerCase() === code) ?? [];
    const isRegion = /^[a-z]{2}$/i.test(region);
    const language = {
      ...openLanguage(code, path),
      ...(isRegion && { regional: `${code}-${region.toUpperCase()}` }),
    };
    ctx.set('Content-Language', language.locale);
    return language;
  };
}

/** Ignores a client that names no language, which is no payer's. */
function negotiate(ctx: Context, country: string | null): LanguageCode {
  const names = ctx.acceptsLanguages().filter((name) => name !== '*');
  const codes = names.map((name) => name.toLowerCase().split('-')[0] ?? '');
  const accepted = codes.find(isLanguageCode);
  if (accepted !== undefined) return accepted;
  if (names.length === 0 || country === null) return 'en';
  const { language } = new Intl.Locale(`und-${country}`).maximize();
  return isLanguageCode(language) ? language : 'en';
}

/** Data for `pt` is not European Portuguese. */
const LOCALES: Partial<Record<LanguageCode, string>> = { pt: 'pt-PT' };

export function openLanguage(code: LanguageCode, path = ''): PageLanguage {
  const locale = LOCALES[code] ?? code;
  return { code, locale, regional: locale, texts: TEXTS[code], path };
}

export function formatMoneyIn(
  { regional }: PageLanguage,
  amount: number,
  currency: string,
): string {
  return formatMoney(amount, currency, regional);
}

/** Formats for a bank's form: only with the region's decimal sign. */
export function formatDecimalIn({ regional }: PageLanguage, amount: number, currency: string) {
  const parts = new Intl.NumberFormat(regional).formatToParts(1.5);
  const sign = parts.find(({ type }) => type === 'decimal')?.value ?? '.';
  return decimalMoney(amount, currency).replace('.', sign);
}

/** UTC; the script changes it to the payer's time zone. */
export function formatTimeIn({ regional }: PageLanguage, at: string): string {
  const format = new Intl.DateTimeFormat(regional, {
    ...{ day: 'numeric', month: 'long', hour: 'numeric', minute: '2-digit' },
    ...{ timeZone: 'UTC', timeZoneName: 'short' },
  });
  return format.format(new Date(at));
}

export function formatMinutesIn({ regional }: PageLanguage, minutes: number): string {
  return new Intl.NumberFormat(regional, {
    ...{ style: 'unit', unit: 'minute', unitDisplay: 'short' },
  }).format(minutes);
}
