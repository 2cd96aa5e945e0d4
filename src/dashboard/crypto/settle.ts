import { assetRules } from '../../domain/crypto/assets';
import { Refusal } from '../../domain/errors';
import { CreateCryptoSettlement } from '../../domain/wire/crypto';
import { createCryptoSettlement } from '../../service/crypto';
import type { DashboardDeps } from '../deps';
import { auditOutcome, buildCreateRequest } from '../frame/audited-act';
import { FORM_KEY, field, isOutcomeUnknown } from '../frame/form';
import type { Answer, Call, Route } from '../frame/route';

export const SETTLE_PATH = '/crypto/settle';

export const SETTLE_ROUTE: Route = {
  method: 'post',
  path: SETTLE_PATH,
  act: 'crypto.settle',
  title: 'Settle now',
  confirmation: {
    question: (form) =>
      `Pay the whole balance of ${field(form, 'asset')} out to the wallet on ` +
      `${field(form, 'network')}? What was sent can't be taken back.`,
    button: 'Settle now',
    password: true,
  },
  handle: settle,
};

/** Settles under the form key, so that a repeated form settles once. */
async function settle(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { form, href } = call;
  const [asset, network, key] = [field(form, 'asset'), field(form, 'network'), field(form, 'key')];
  if (assetRules(asset, network) === undefined || !FORM_KEY.test(key)) return 'not_found';
  const back = href('/crypto/wallets');
  const request = buildCreateRequest(call, key, CreateCryptoSettlement, { asset, network });
  const facts = { asset, network, idempotency_key: key };
  const act = { act: 'settlement.created', target: null, facts } as const;
  try {
    const { id } = await auditOutcome(call, act, () => createCryptoSettlement(deps, request));
    const text = 'The settlement has started. Its status shows when it has completed.';
    return { go: href(`/crypto/settlements/${id}`), flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const text = isOutcomeUnknown(error)
      ? 'It is not known yet whether it was settled. Look at the settlements before you try again.'
      : error.message;
    return { go: back, flash: { tone: 'bad', text } };
  }
}
