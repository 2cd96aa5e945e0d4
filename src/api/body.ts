import { isUtf8 } from 'node:buffer';
import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { JsonSyntaxError, type ParsedJson, parseJson } from '../base/json';
import { Refusal } from '../domain/errors';
import { setSentBody } from './context';

/** @see docs/api.md#money-json-text */
const BODY_BYTES_MAX = 64 * 1_024;
/** Metadata of 8 KiB cannot reach it. */
const BODY_VALUES_MAX = 5_000;
/** No request has so many next to its metadata. */
const OWN_VALUES_MAX = 500;
const utf8 = new TextDecoder();
const EMPTY: ParsedJson = { value: {}, canonical: '{}' };

/** @throws Refusal 413 `body_too_large`, 415 `unsupported_media_type`, 400 `invalid_json` */
export async function readBody(
  ctx: Context,
  { raw, mayBeEmpty }: { raw: readonly string[]; mayBeEmpty: boolean },
): Promise<ParsedJson> {
  const bytes = await readBytes(ctx);
  setSentBody(ctx, { bytes: bytes.length });
  if (bytes.length === 0) {
    if (mayBeEmpty) return EMPTY;
    throw new Refusal('invalid_json', 'The body is empty: a JSON object is expected.');
  }
  const refuse = (message: string) => new Refusal('unsupported_media_type', message);
  if (!ctx.is('application/json')) throw refuse('Send the body as Content-Type: application/json.');
  if (!/^(utf-?8)?$/i.test(ctx.request.charset)) throw refuse('Send the body in UTF-8.');
  const encoding = ctx.get('Content-Encoding');
  if (encoding !== '' && encoding !== 'identity') {
    throw refuse('Send the body without a content encoding.');
  }
  const parsed = parseBody(bytes, raw);
  setSentBody(ctx, { bytes: bytes.length, value: parsed.value });
  return parsed;
}

/** @throws Refusal 400 `invalid_json` */
export function parseBody(bytes: Buffer, raw: readonly string[] = []): ParsedJson {
  if (!isUtf8(bytes)) throw new Refusal('invalid_json', 'The body is not UTF-8.');
  try {
    const limits = { valuesMax: BODY_VALUES_MAX, ownValuesMax: OWN_VALUES_MAX };
    return parseJson(utf8.decode(bytes), { raw, ...limits });
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new Refusal('invalid_json', error.message);
    throw error;
  }
}

/** @throws Refusal 413 `body_too_large`; 400 where the caller has hung up before */
export async function readBytes(ctx: Context): Promise<Buffer> {
  try {
    return await getRawBody(ctx.req, { limit: BODY_BYTES_MAX, length: ctx.request.length });
  } catch (error) {
    if (error instanceof Error && 'type' in error && error.type === 'entity.too.large') {
      throw new Refusal('body_too_large', `The body is larger than ${BODY_BYTES_MAX} bytes.`);
    }
    if (ctx.req.destroyed) throw new Refusal('invalid_request', 'The connection was closed.');
    throw error;
  }
}
