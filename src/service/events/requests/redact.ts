import { z } from 'zod';
import { isJsonObject, type JsonValue, NumberLiteral } from '../../../base/json';
import { stringifyJson } from '../../../base/json-write';
import { ErrorBody } from '../../../domain/errors';
import { IDENTIFIER, LOGGED } from '../../../domain/logged';
import type { Endpoint } from '../../../domain/wire/endpoint';

const REDACTED = '[redacted]';
const CUT = '[cut]';
/** Items of a list; the rest is not stored. */
const ITEMS_MAX = 20;

export interface SentBody {
  bytes: number;
  /** Undefined where it is no JSON. */
  value?: JsonValue;
}

export interface Exchange {
  endpoint: Pick<Endpoint, 'body' | 'params' | 'query' | 'success'>;
  params: { [name: string]: JsonValue };
  query: { [name: string]: JsonValue };
  /** Undefined where it was not read. */
  request: SentBody | undefined;
  status: number;
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
 * Shows the values that the schemas of the endpoint mark as logged. A message of the service is
 * redacted where it quotes any other.
 * @see docs/api.md#requests
 */
export function redactExchange(exchange: Exchange): RedactedExchange {
  const { endpoint, params, query, request, status, response, idempotencyKey } = exchange;
  const hidden = new Set<string>();
  show(endpoint.params, params, hidden);
  show(endpoint.query, query, hidden);
  const sent = request === undefined ? null : redactSent(request, endpoint.body, hidden);
  const isRead = request === undefined || request.bytes === 0 || request.value !== undefined;
  const schema = status < 400 ? endpoint.success.schema : ErrorBody;
  const answer = response && show(schema, response, hidden, isRead);
  const key = idempotencyKey ?? null;
  return {
    request_body: sent,
    response_body: answer === undefined ? null : stringifyJson(answer),
    idempotency_key: key === null || IDENTIFIER.shows(key) ? key : REDACTED,
  };
}

function redactSent(
  { bytes, value }: SentBody,
  schema: z.ZodType | undefined,
  hidden: Set<string>,
): string | null {
  if (bytes === 0) return null;
  if (isJsonObject(value)) return stringifyJson(show(schema, value, hidden));
  return JSON.stringify(`${REDACTED} ${bytes} bytes that are no JSON object`);
}

/** @param hasAll whether `hidden` has all that a message could quote */
function show(
  schema: z.core.$ZodType | undefined,
  value: JsonValue,
  hidden: Set<string>,
  hasAll = true,
): JsonValue {
  if (value === null) return null;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return show(schema.unwrap(), value, hidden, hasAll);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    const element: z.core.$ZodType = schema._zod.def.element;
    const items = value.map((item) => show(element, item, hidden, hasAll));
    return items.length > ITEMS_MAX ? [...items.slice(0, ITEMS_MAX), CUT] : items;
  }
  if (schema instanceof z.ZodObject && isJsonObject(value)) {
    const fields = Object.entries(value).map(([name, item]) => {
      const field = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
      if (field === undefined) hidden.add(name);
      return [field === undefined ? REDACTED : name, show(field, item, hidden, hasAll)] as const;
    });
    return Object.fromEntries(fields);
  }
  if (isLogged(schema, value, hasAll ? hidden : undefined)) return value;
  collectTexts(value, hidden);
  return REDACTED;
}

/** Digits of the largest amount: a card has more. */
const AMOUNT_DIGITS = 11;
const CLOSED = [z.ZodBoolean, z.ZodEnum, z.ZodLiteral, z.ZodUUID, z.ZodISODateTime];

function isLogged(
  schema: z.core.$ZodType | undefined,
  value: JsonValue,
  hidden: ReadonlySet<string> | undefined,
): boolean {
  if (schema === undefined) return false;
  if (schema instanceof z.ZodNumber) {
    // As it was sent, since 10.0 is refused.
    const number = value instanceof NumberLiteral ? value.text : value;
    const isNumber = typeof value === 'number' || value instanceof NumberLiteral;
    return isNumber && String(number).replace(/\D/g, '').length <= AMOUNT_DIGITS;
  }
  const entry = LOGGED.get(schema);
  if (entry === undefined && !CLOSED.some((kind) => schema instanceof kind)) return false;
  if (!z.safeParse(schema, value).success) return false;
  if (entry === undefined) return true;
  const text = String(value);
  if (entry.mayQuote && (hidden === undefined || quotes(text, hidden))) return false;
  return entry.shows(text);
}

function collectTexts(value: JsonValue, texts: Set<string>): void {
  if (typeof value === 'string' || typeof value === 'number') texts.add(String(value));
  else if (value instanceof NumberLiteral) texts.add(value.text);
  else if (Array.isArray(value)) for (const item of value) collectTexts(item, texts);
  else if (isJsonObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      texts.add(name);
      collectTexts(item, texts);
    }
  }
}

const HIDDEN_MAX = 500;
const HIDDEN_LENGTH_MIN = 3;
/** A message may cut what it quotes. */
const QUOTED_LENGTH = 24;

function quotes(message: string, hidden: ReadonlySet<string>): boolean {
  if (hidden.size > HIDDEN_MAX) return true;
  const lower = message.toLowerCase();
  return [...hidden].some((text) => {
    const start = text.trim().toLowerCase().slice(0, QUOTED_LENGTH).trim();
    return start.length >= HIDDEN_LENGTH_MIN && lower.includes(start);
  });
}

/** Fills `/v1/payments/:id`, but for parameters that are no ids. */
export function redactPath(route: string, params: Readonly<Record<string, string>>): string {
  return route.replaceAll(/:(\w+)/g, (_, name: string) => {
    const segment = params[name] ?? '';
    return IDENTIFIER.shows(segment) ? segment : REDACTED;
  });
}
