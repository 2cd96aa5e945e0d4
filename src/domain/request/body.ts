import { isJsonObject, type JsonValue, NumberLiteral, RawJson } from '../../base/json';
import { type Form, findForm, isSensitiveKey, mayHold } from './fields';
import { type Hidden, REDACTED, redactMessage } from './text';
import { isHidden, isPlainKey, type Leaf, redactFreeKey, redactLeaf, type Walk } from './values';
import { isOwnWord } from './words';

/** Characters, about; the rest is not stored. */
const BODY_LENGTH_MAX = 4_000;
const DEPTH_MAX = 6;

export interface SentBody {
  bytes: number;
  value?: JsonValue;
}

export interface Exchange {
  /** Stored encrypted, so nothing of these fields is shown. */
  encrypted?: readonly string[];
  /** An error may quote them. */
  params: { [name: string]: JsonValue };
  request: SentBody | undefined;
  /** Parsed; undefined when there is none. */
  response: JsonValue | undefined;
  idempotencyKey: string | undefined;
}

export interface RedactedExchange {
  /** JSON; null where there is no body. */
  request_body: string | null;
  response_body: string | null;
  idempotency_key: string | null;
}

/**
 * Shows valid values of fields that identify nobody. What other fields contain is hidden
 * everywhere.
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

function hideFields(sent: SentBody, fields: readonly string[], hidden: Set<string>): SentBody {
  const { value } = sent;
  if (!isJsonObject(value)) return sent;
  const held = fields.filter((field) => value[field] != null);
  for (const field of held) collectHidden(value[field] ?? null, undefined, hidden);
  const replaced = Object.fromEntries(held.map((field) => [field, REDACTED]));
  return held.length === 0 ? sent : { ...sent, value: { ...value, ...replaced } };
}

function redactSent({ bytes, value }: SentBody, hidden: Hidden): string | null {
  if (bytes === 0) return null;
  if (isJsonObject(value)) return redactBody(value, { isOwn: false, hidden });
  return JSON.stringify(`${REDACTED} ${bytes} bytes that are no JSON object`);
}

interface BudgetedWalk extends Walk {
  left: number;
}

function redactBody(value: JsonValue, walk: Walk): string {
  return write(value, 'object', { ...walk, left: BODY_LENGTH_MAX }, 0);
}

function write(
  value: JsonValue,
  form: Form | undefined,
  walk: BudgetedWalk,
  depth: number,
): string {
  if (value instanceof RawJson) return write(value.value(), form, walk, depth);
  const isContainer = Array.isArray(value) || isJsonObject(value);
  if (isContainer && (!mayHold(form) || depth >= DEPTH_MAX)) return count(REDACTED, walk);
  if (Array.isArray(value)) return writeList(value, form, walk, depth);
  if (isJsonObject(value)) return writeObject(value, form, walk, depth);
  return count(redactLeaf(value, form, walk), walk);
}

function count(shown: Leaf, walk: BudgetedWalk) {
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
  for (const [key, item] of Object.entries(value)) {
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

const HIDDEN_MAX = 50;
const HIDDEN_LENGTH = { min: 3, max: 200 };

/** Other texts may repeat the values of hidden fields. */
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
  if (!isJsonObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (!isPlainKey(key) && key.length >= HIDDEN_LENGTH.min) {
      hidden.add(key.slice(0, HIDDEN_LENGTH.max));
    }
    collectHidden(item, inner === 'object' ? findForm(key) : inner, hidden);
  }
}
