import { z } from 'zod';
import { AMOUNT_MAX } from '../banks/callback';
import { COUNTRIES } from '../countries';
import { CODE, IDENTIFIER, LOGGED, OWN_ID, WHOLE } from '../logged';
import { CURRENCIES } from '../money/money';
import { fits, toLowerId } from '../shape';
import { SAMPLE_CREATED } from './samples';

const REFERENCE_LENGTH_MAX = 255;
const NAME_LENGTH_MAX = 100;
const URL_LENGTH_MAX = 2_048;

/** Can be stored and returned unchanged. */
export function text(lengthMax: number) {
  return z
    .string()
    .refine((value) => fits(value, lengthMax), `must have at most ${lengthMax} characters`)
    .refine((value) => !/\p{Surrogate}/u.test(value), 'must be well-formed Unicode')
    .refine((value) => !value.includes('\0'), 'must not contain the character U+0000')
    .meta({ maxLength: lengthMax });
}

/** Refuses a decimal, never rounds it. @see docs/api.md#money-json-text */
export const Amount = z
  .int('must be an integer in minor units')
  .min(1, 'must be at least 1')
  .max(AMOUNT_MAX, `must be at most ${AMOUNT_MAX}`)
  .meta({ description: 'Minor units: 10.50 is 1050.', format: 'int64', examples: [1050] });

const currencies = new Set<string>(CURRENCIES);
const countries = new Set<string>(COUNTRIES);

/** Minor units. */
export const Moved = z
  .int()
  .min(0)
  .meta({ format: 'int64', examples: [0] });

export const Currency = z
  .string()
  .refine((code) => currencies.has(code), 'must be an ISO 4217 currency code')
  .meta({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.' })
  .register(LOGGED, WHOLE);

export const Country = z
  .string()
  .refine((code) => countries.has(code), 'must be an ISO 3166-1 alpha-2 country code')
  .meta({ pattern: '^[A-Z]{2}$', description: 'ISO 3166-1 alpha-2.' })
  .register(LOGGED, WHOLE);

export const Reference = text(REFERENCE_LENGTH_MAX);
/** Reference of an order, not of a person, which the erasure of a payer leaves. */
export const OrderReference = text(REFERENCE_LENGTH_MAX).register(LOGGED, IDENTIFIER);
export const NamePart = text(NAME_LENGTH_MAX);

/** Other hosts can contain characters with a meaning in a header. */
const PLAIN_HOST = /^([\w.-]+|\[[\da-f:.]+\])$/;

/** @see docs/api.md#create-a-payment */
export const HttpsUrl = text(URL_LENGTH_MAX)
  .refine((value) => {
    // The URL parser accepts white space, control characters and backslashes, but a browser is
    // redirected to this exact text.
    if (!/^https:\/\/[^\s\p{Cc}\\]+$/iu.test(value) || !URL.canParse(value)) return false;
    const { protocol, username, password, hostname } = new URL(value);
    const userinfo = /^https:\/\/[^/?#]*@/i.test(value) || username !== '' || password !== '';
    return protocol === 'https:' && PLAIN_HOST.test(hostname) && !userinfo;
  }, 'must be an absolute https URL without user name or password')
  .meta({ format: 'uri', pattern: '^https://' });

export const EMAIL_LENGTH_MAX = 254;
const LOCAL_PART_LENGTH_MAX = 64;
const LABEL_LENGTH_MAX = 63;
const LOCAL_PART = /^[\w!#$%&'*+/=?^`{|}~-]+(?:[.][\w!#$%&'*+/=?^`{|}~-]+)*$/;
const DOMAIN =
  /^(?:[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?[.])+\p{L}[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}]$/u;

/** Accepts all atoms of RFC 5321 and international domains. @see docs/api.md#money-json-text */
export function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [localPart, domain] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  if (text.length > EMAIL_LENGTH_MAX || localPart.length > LOCAL_PART_LENGTH_MAX) return false;
  if (!LOCAL_PART.test(localPart) || !DOMAIN.test(domain)) return false;
  const url = `http://${domain}`;
  if (!URL.canParse(url)) return false;
  return new URL(url).hostname.split('.').every((label) => label.length <= LABEL_LENGTH_MAX);
}

export const Email = z
  .string()
  .refine(isEmail, 'must be an e-mail address')
  .meta({ format: 'email', maxLength: EMAIL_LENGTH_MAX });

/** @see docs/api.md#money-json-text */
export const Timestamp = z.iso.datetime({ precision: 3 }).meta({ examples: [SAMPLE_CREATED] });

/** @see docs/api.md#states, docs/api.md#refunds */
export const Failure = z
  .object({ code: z.string().register(LOGGED, CODE), message: z.string() })
  .meta({ id: 'Failure' });

/** ID of ours in a request, in any case. @see docs/api.md#money-json-text */
export const Id = z.string().overwrite(toLowerId).register(LOGGED, OWN_ID);

export const ById = z.object({ id: Id });

/** Code of ISO 4217 or ISO 3166-1 in a response. */
export const StoredCode = z.string().register(LOGGED, CODE);

export const NullableText = z.string().nullable();

export function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish();
}
