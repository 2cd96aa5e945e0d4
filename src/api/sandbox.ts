import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Refusal } from '../domain/errors';
import { simulatePayment } from '../domain/wire/sandbox';
import { callbackKey } from '../store/callbacks';
import type { PaymentDocument } from '../store/payments';
import type { ApiDeps } from './context';
import type { Mount } from './mount';
import { paymentReader } from './payments';

/** How long an answer waits for the workflow to take the event in. */
const SETTLE_MS = 5_000;
const LOOK_AGAIN_MS = 20;

/** Decided: "Sandbox". The event goes the way of every bank callback. */
export function mountSandbox(mount: Mount, deps: ApiDeps): void {
  const { present, find } = paymentReader(deps);

  mount.endpoint(simulatePayment, async ({ key, params, body }) => {
    if (key.livemode) {
      const message = 'Only sandbox keys can simulate what a bank reports.';
      throw new Refusal('api_key_scope_insufficient', message);
    }
    const payment = await find(params.id, key);
    const callback_id = `simulated_${randomUUID()}`;
    await deps.temporal.deliverCallback({
      connector: payment.connector,
      payment_id: payment._id,
      name: body.event,
      callback: {
        callback_id,
        occurred_at: deps.now().toISOString(),
        ...(body.code == null ? {} : { code: body.code }),
        ...(body.reason == null ? {} : { reason: body.reason }),
      },
    });
    await takenIn(deps, payment, callback_id);
    return present(await find(params.id, key));
  });
}

/** Until the payment has moved, or the callback is kept as one that moves nothing. */
async function takenIn(
  { stores }: ApiDeps,
  { _id, version, connector }: PaymentDocument,
  callbackId: string,
): Promise<void> {
  const giveUpAt = Date.now() + SETTLE_MS;
  while (Date.now() < giveUpAt) {
    const payment = await stores.payments.get(_id);
    if (payment !== null && payment.version > version) return;
    const callback = await stores.callbacks.get(callbackKey(connector, callbackId));
    if (callback?.unapplied != null || callback?.parked != null) return;
    await wait(LOOK_AGAIN_MS);
  }
}
