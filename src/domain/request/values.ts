import { NumberLiteral } from '../../base/json';
import type { Form } from './fields';
import { type Hidden, isId, REDACTED, redactMessage, redactText } from './text';
import { isOwnWord } from './words';

/** No card or account number is so short. */
const FEW_DIGITS = 5;
/** Digits of the largest amount. */
const AMOUNT_DIGITS = 11;

/** Another key may be what should have been its value. */
const KEY = /^[a-z][A-Za-z0-9_]{0,47}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)$/;
const DURATION = /^P(\d{1,4}D)?(T(\d{1,4}[HMS]){1,3})?$/;
const SHORT_NUMBER = /^-?\d{1,5}([.,]\d{1,3})?$/;

export interface Walk {
  /** Written by the service, with values as they should be. */
  isOwn: boolean;
  hidden: Hidden;
}

export type Leaf = string | number | boolean | null | NumberLiteral;

export function redactLeaf(value: Leaf, form: Form | undefined, walk: Walk): Leaf {
  if (value === null) return null;
  switch (form) {
    case 'value':
      return walk.isOwn || isHarmless(value) ? value : REDACTED;
    case 'text':
      return typeof value === 'string' ? redactText(value, walk.hidden) : REDACTED;
    case 'message':
      return typeof value === 'string' ? redactMessage(value, walk.hidden) : REDACTED;
    case 'name':
      return typeof value === 'string' ? redactName(value, walk) : REDACTED;
    case 'free':
      if (typeof value === 'string') return redactText(value, walk.hidden);
      return typeof value === 'boolean' || countDigits(value) <= FEW_DIGITS ? value : REDACTED;
    case 'url':
      return typeof value === 'string' ? redactUrl(value) : REDACTED;
    default:
      return REDACTED;
  }
}

export function isHidden(value: string | number | NumberLiteral, form: Form | undefined): boolean {
  if (form === undefined || form === 'keys') return true;
  if (form === 'value') return !isHarmless(value);
  return form === 'url' && (typeof value !== 'string' || redactUrl(value) === REDACTED);
}

/** Whether it is a word of the API, an id, a time, a duration, or at most an amount. */
function isHarmless(value: Leaf): boolean {
  if (typeof value === 'boolean' || value === null) return true;
  if (typeof value !== 'string') return countDigits(value) <= AMOUNT_DIGITS;
  const forms = [TIME, DURATION, SHORT_NUMBER];
  return isOwnWord(value) || isId(value) || forms.some((form) => form.test(value));
}

function countDigits(value: number | NumberLiteral): number {
  const text = value instanceof NumberLiteral ? value.text : String(value);
  return text.replace(/\D/g, '').length;
}

/** Path such as `customer.email`. */
function redactName(path: string, { hidden }: Walk): string {
  const isPlain = path.split('.').every((part) => KEY.test(part) || /^\d{1,3}$/.test(part));
  return isPlain ? redactMessage(path, hidden) : REDACTED;
}

function redactUrl(text: string): string {
  if (!URL.canParse(text)) return REDACTED;
  const { origin, pathname, search, username, password } = new URL(text);
  if (origin === 'null' || username !== '' || password !== '') return REDACTED;
  if (redactMessage(origin) !== origin) return REDACTED;
  return pathname === '/' && search === '' ? origin : `${origin}/${REDACTED}`;
}

export function isPlainKey(key: string): boolean {
  return KEY.test(key) && redactMessage(key) === key;
}

export function redactFreeKey(key: string, { hidden }: Walk): string {
  return redactText(key, hidden) === key ? key : REDACTED;
}
