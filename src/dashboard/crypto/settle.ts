import { assetRules } from '../../domain/crypto';
import { Refusal } from '../../domain/errors';
import type { DashboardDeps } from '../deps';
import { field } from '../form';
import { FORM_KEY, isUnknown } from '../once';
import type { Answer, Call, Route } from '../route';

export const SETTLE_PATH = '/crypto/settle';

export const SETTLE_ROUTE: Route = {
  method: 'post',
  path: SETTLE_PATH,
  act: 'crypto.settle',
  title: 'Settle now',
  ask: {
    question: (form) =>
      `Pay the whole balance of ${field(form, 'asset')} out to the wallet on ` +
      `${field(form, 'network')}? What was sent can't be taken back.`,
    button: 'Settle now',
    password: true,
  },
  handle: settle,
};

/** Settles by the key of the form, so that a form that is sent twice settles once. */
async function settle(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, form, href, requestId } = call;
  const [asset, network, key] = [field(form, 'asset'), field(form, 'network'), field(form, 'key')];
  if (assetRules(asset, network) === undefined || !FORM_KEY.test(key)) return 'not_found';
  const back = href('/crypto/wallets');
  try {
    const after = { asset, network, idempotency_key: key };
    await call.audit({ act: 'settlement.created', ...scope, target: null, after });
    const id = await deps.acts.settle({ ...scope, key, requestId, asset, network });
    const text = 'The settlement is on its way. Its status tells when it has completed.';
    return { go: href(`/crypto/settlements/${id}`), flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const text = isUnknown(error)
      ? 'It is not known yet whether it was settled. Look at the settlements before you try again.'
      : error.message;
    return { go: back, flash: { tone: 'bad', text } };
  }
}
