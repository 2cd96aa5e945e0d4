import { type JsonValue, NumberLiteral, RawJson } from '../../base/json';
import { type Form, findForm, isSensitiveKey } from './fields';
import { type Hidden, isId, REDACTED, redactMessage, redactText } from './text';
import { isOwnWord } from './words';

/** Characters of a redacted body, about; what follows is not stored. */
const BODY_LENGTH_MAX = 4_000;
const DEPTH_MAX = 6;
const HIDDEN_MAX = 50;
const HIDDEN_LENGTH = { min: 3, max: 200 };
/** Digits that no number of a card or an account has. */
const FEW_DIGITS = 5;
/** As many digits as the largest amount has. */
const AMOUNT_DIGITS = 11;

/** Keys that developers write; another may be what should have been its value. */
const KEY = /^[a-z][A-Za-z0-9_]{0,47}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)$/;
const DURATION = /^P(\d{1,4}D)?(T(\d{1,4}[HMS]){1,3})?$/;
const SHORT_NUMBER = /^-?\d{1,5}([.,]\d{1,3})?$/;

/** Body of a request: its size, and its value where it is JSON. */
export interface SentBody {
  bytes: number;
  value?: JsonValue;
}

export interface Exchange {
  /** Fields of the request that are stored encrypted: nothing of them is shown. */
  encrypted?: readonly string[];
  /** Parameters of path and query, which an error may quote. */
  params: { [name: string]: JsonValue };
  request: SentBody | undefined;
  /** Parsed; undefined when there is none. */
  response: JsonValue | undefined;
  idempotencyKey: string | undefined;
}

export interface RedactedExchange {
  /** JSON texts; null where there is no body. */
  request_body: string | null;
  response_body: string | null;
  idempotency_key: string | null;
}

/**
 * Redacts what was sent and answered. Of the fields that identify nobody, the
 * valid values are shown; other fields are hidden, and what they contain is hidden everywhere.
 * @see docs/api.md#requests
 */
export function redactExchange({
  encrypted = [],
  params,
  request: sent,
  response,
  idempotencyKey,
}: Exchange): RedactedExchange {
  const found = new Set<string>();
  collectHidden(params, 'object', found);
  const request = sent && hideFields(sent, encrypted, found);
  if (request?.value !== undefined) collectHidden(request.value, 'object', found);
  const hidden = [...found];
  return {
    request_body: request === undefined ? null : redactSent(request, hidden),
    response_body: response === undefined ? null : redactBody(response, { isOwn: true, hidden }),
    idempotency_key: idempotencyKey === undefined ? null : redactMessage(idempotencyKey, hidden),
  };
}

/** Replaces fields, and collects what they held. */
function hideFields(sent: SentBody, fields: readonly string[], hidden: Set<string>): SentBody {
  const { value } = sent;
  if (!isObject(value)) return sent;
  const held = fields.filter((field) => value[field] != null);
  for (const field of held) collectHidden(value[field] ?? null, undefined, hidden);
  const replaced = Object.fromEntries(held.map((field) => [field, REDACTED]));
  return held.length === 0 ? sent : { ...sent, value: { ...value, ...replaced } };
}

function redactSent({ bytes, value }: SentBody, hidden: Hidden): string | null {
  if (bytes === 0) return null;
  if (isObject(value)) return redactBody(value, { isOwn: false, hidden });
  return JSON.stringify(`${REDACTED} ${bytes} bytes that are no JSON object`);
}

/** Collects the values of hidden fields, which other texts may repeat. */
function collectHidden(value: JsonValue, form: Form | undefined, hidden: Set<string>): void {
  if (hidden.size >= HIDDEN_MAX || value instanceof RawJson) return;
  if (typeof value === 'string' || typeof value === 'number' || value instanceof NumberLiteral) {
    const text = (value instanceof NumberLiteral ? value.text : String(value)).trim();
    const isLong = text.length >= HIDDEN_LENGTH.min && text.length <= HIDDEN_LENGTH.max;
    if (isLong && !isOwnWord(text) && isHidden(value, form)) hidden.add(text);
    return;
  }
  const inner = mayHold(form) ? form : undefined;
  if (Array.isArray(value)) {
    for (const item of value) collectHidden(item, inner, hidden);
    return;
  }
  for (const [key, item] of getMembers(value)) {
    if (!isPlainKey(key) && key.length >= HIDDEN_LENGTH.min) {
      hidden.add(key.slice(0, HIDDEN_LENGTH.max));
    }
    collectHidden(item, inner === 'object' ? findForm(key) : inner, hidden);
  }
}

/** Whether nothing is shown of a value. */
function isHidden(value: string | number | NumberLiteral, form: Form | undefined): boolean {
  if (form === undefined || form === 'keys') return true;
  if (form === 'value') return !isHarmless(value);
  return form === 'url' && (typeof value !== 'string' || redactUrl(value) === REDACTED);
}

interface Walk {
  /** Whether the service wrote the body, whose values are what they should be. */
  isOwn: boolean;
  hidden: Hidden;
}

interface BudgetedWalk extends Walk {
  left: number;
}

function redactBody(value: JsonValue, walk: Walk): string {
  return write(value, 'object', { ...walk, left: BODY_LENGTH_MAX }, 0);
}

/** Whether a field of this form may be a list or an object. */
function mayHold(form: Form | undefined): boolean {
  return form === 'object' || form === 'value' || form === 'free' || form === 'keys';
}

/** Writes JSON, and counts its characters. */
function write(
  value: JsonValue,
  form: Form | undefined,
  walk: BudgetedWalk,
  depth: number,
): string {
  if (value instanceof RawJson) return write(value.value(), form, walk, depth);
  const isContainer = Array.isArray(value) || isObject(value);
  if (isContainer && (!mayHold(form) || depth >= DEPTH_MAX)) return count(REDACTED, walk);
  if (Array.isArray(value)) return writeList(value, form, walk, depth);
  if (isObject(value)) return writeObject(value, form, walk, depth);
  return count(redactLeaf(value, form, walk), walk);
}

function count(shown: string | number | boolean | null | NumberLiteral, walk: BudgetedWalk) {
  const text = shown instanceof NumberLiteral ? shown.text : JSON.stringify(shown);
  walk.left -= text.length + 1;
  return text;
}

function writeList(
  items: readonly JsonValue[],
  form: Form | undefined,
  walk: BudgetedWalk,
  depth: number,
): string {
  const texts: string[] = [];
  for (const item of items) {
    if (walk.left <= 0) break;
    texts.push(write(item, form, walk, depth + 1));
  }
  if (texts.length < items.length) texts.push(JSON.stringify(CUT));
  return `[${texts.join()}]`;
}

const CUT = '[cut]';

function writeObject(
  value: { [key: string]: JsonValue },
  form: Form | undefined,
  walk: BudgetedWalk,
  depth: number,
): string {
  const texts: string[] = [];
  for (const [key, item] of getMembers(value)) {
    if (walk.left <= 0) {
      texts.push(`${JSON.stringify(CUT)}:true`);
      break;
    }
    const shownKey = form === 'free' ? redactFreeKey(key, walk) : isPlainKey(key) ? key : REDACTED;
    const text = write(item, findMemberForm(key, form), walk, depth + 1);
    texts.push(`${count(shownKey, walk)}:${text}`);
  }
  return `{${texts.join()}}`;
}

function findMemberForm(key: string, form: Form | undefined): Form | undefined {
  if (form === 'free') return isSensitiveKey(key) ? undefined : 'free';
  return form === 'object' ? findForm(key) : form;
}

function isPlainKey(key: string): boolean {
  return KEY.test(key) && redactMessage(key) === key;
}

function redactFreeKey(key: string, { hidden }: Walk): string {
  return redactText(key, hidden) === key ? key : REDACTED;
}

type Leaf = string | number | boolean | null | NumberLiteral;

function redactLeaf(value: Leaf, form: Form | undefined, walk: Walk): Leaf {
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

/** Path of a field, as `customer.email`. */
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

function isObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberLiteral) &&
    !(value instanceof RawJson)
  );
}

function getMembers(value: JsonValue): [string, JsonValue][] {
  return isObject(value) ? Object.entries(value) : [];
}

const SEGMENT = /^(?=.*\d)[\w-]{1,64}$/;

/** Fills a route such as `/v1/payments/:id` with its parameters, without those that are no ids. */
export function redactPath(route: string, params: Readonly<Record<string, string>>): string {
  return route.replaceAll(/:(\w+)/g, (_, name: string) => {
    const segment = params[name] ?? '';
    const isPlain = isId(segment) || (SEGMENT.test(segment) && redactText(segment) === segment);
    return isPlain ? segment : REDACTED;
  });
}
