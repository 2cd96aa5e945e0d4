import type Router from '@koa/router';
import type { Context } from 'koa';
import { createSignatureCheck, signCallback, UnreadableKey } from '../callbacks/verify';
import { Refusal, unavailable } from '../domain/errors';
import { isBalanceAccountName } from '../domain/money/money';
import { HttpCallback, type ResourceCallback } from '../domain/wire/callback';
import { validate } from '../domain/wire/validate';
import { parseBody, readBytes } from './body';
import { type ApiDeps, getRequestId } from './context';
import { createFailureLimit, type RateLimits } from './rate-limit';

/**
 * Serves connectors without a Temporal client. A response reveals a resource only to its own
 * connector.
 * @see docs/connectors.md#callbacks-over-http
 */
export function mountConnectors(router: Router, deps: ApiDeps, limits: RateLimits): void {
  const check = createSignatureCheck(deps);
  const limitFailures = createFailureLimit('signature');

  /** @throws Refusal 401 `signature_invalid`, also for an unknown connector */
  const verify = async (ctx: Context, connector: string) => {
    const header = ctx.get('Connector-Signature');
    if (header === '' || !isBalanceAccountName(connector)) throw invalidSignature();
    const bytes = await readBytes(ctx);
    const key = await check({ connector, header, body: bytes }).catch((error: unknown) => {
      if (!(error instanceof UnreadableKey)) throw error;
      throw unavailable('The signature can not be checked now.', error);
    });
    if (key !== undefined) return { connector, key, bytes };
    const fields = { request_id: getRequestId(ctx), connector, code: 'signature_invalid' };
    deps.log.info(fields, 'callback refused');
    throw invalidSignature();
  };

  router.post('/connectors/:name/callbacks', async (ctx) => {
    const { name = '' } = ctx.params;
    const { connector, key, bytes } = await limitFailures(ctx, name, () => verify(ctx, name));
    await limits.callback(ctx, connector);
    const report = parseReport(connector, bytes);
    // The workflow does not see the verified header.
    const status = await deps.callbacks.receive(report, signCallback(key, report));
    ctx.status = 202;
    ctx.body = { status };
    if (status !== 'parked') return;
    const { resource, resource_id } = report;
    const message =
      `resource_id: ${connector} has no ${resource} ${resource_id}, or not yet. The callback is ` +
      'stored for an operator, and nothing was applied.';
    ctx.body = { status, applied: false, message };
  });
}

function invalidSignature(): Refusal {
  return new Refusal(
    'signature_invalid',
    'Sign the raw body under a key of this connector: Connector-Signature: t=…,v1=…, once.',
  );
}

/** @throws Refusal 400 `invalid_request` */
function parseReport(connector: string, bytes: Buffer): ResourceCallback {
  try {
    const { value } = parseBody(bytes);
    const { resource, resource_id, event, ...callback } = validate(HttpCallback, value);
    return { connector, resource, resource_id, name: event, callback };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal('invalid_request', error.message, { details: error.details });
  }
}
