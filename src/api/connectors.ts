import type Router from '@koa/router';
import type { Context } from 'koa';
import { type ConnectorKey, signCallback } from '../connectors/mac';
import { UnreadableKey } from '../connectors/secrets';
import { createSignatureCheck } from '../connectors/signature';
import { isBalanceAccountName } from '../domain/balance-account';
import { Refusal, unavailable } from '../domain/errors';
import { HttpCallback, type ResourceCallback } from '../domain/wire/callback';
import { parseBody, readBytes } from './body';
import { type ApiDeps, requestIdOf } from './context';
import { createFailureLimit, type RateLimits } from './rate-limit';
import { validate } from './validate';

/** Callback whose sender is known. */
interface Admitted {
  connector: string;
  key: ConnectorKey;
  bytes: Buffer;
}

/**
 * Door for banks and teams that run no Temporal client: verify → limit → validate → keep and signal.
 * What is told of a resource is whether its connector may know it.
 * @see docs/connectors.md#callbacks-over-http
 */
export function mountConnectors(router: Router, deps: ApiDeps, limits: RateLimits): void {
  const check = createSignatureCheck(deps);
  const guarded = createFailureLimit('signature');

  /** @throws Refusal 401 `signature_invalid`, for an unknown connector too */
  const admit = async (ctx: Context, connector: string): Promise<Admitted> => {
    const header = ctx.get('Connector-Signature');
    if (header === '' || !isBalanceAccountName(connector)) throw invalidSignature();
    const bytes = await readBytes(ctx);
    const key = await check({ connector, header, body: bytes }).catch((error: unknown) => {
      if (!(error instanceof UnreadableKey)) throw error;
      throw unavailable('The signature can not be checked now.', error);
    });
    if (key !== undefined) return { connector, key, bytes };
    const fields = { request_id: requestIdOf(ctx), connector, code: 'signature_invalid' };
    deps.log.info(fields, 'callback refused');
    throw invalidSignature();
  };

  router.post('/connectors/:name/callbacks', async (ctx) => {
    const { name = '' } = ctx.params;
    const { connector, key, bytes } = await guarded(ctx, () => admit(ctx, name));
    await limits.callback(ctx, connector);
    const report = reportOf(connector, bytes);
    // Signed anew for the workflow, which knows nothing of what a header proved.
    const status = await deps.temporal.receiveCallback(report, signCallback(key, report));
    ctx.status = 202;
    ctx.body = { status };
  });
}

function invalidSignature(): Refusal {
  return new Refusal(
    'signature_invalid',
    'Sign the raw body under a key of this connector: Connector-Signature: t=…,v1=…, once.',
  );
}

/** Report that a body makes. @throws Refusal 400 `invalid_request`, with a fault for each field */
function reportOf(connector: string, bytes: Buffer): ResourceCallback {
  try {
    const { value } = parseBody(bytes);
    const { resource, resource_id, event, ...callback } = validate(HttpCallback, value);
    return { connector, resource, resource_id, name: event, callback };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // One code for all that is wrong with a body: the faults are in the details.
    throw new Refusal('invalid_request', error.message, { details: error.details });
  }
}
