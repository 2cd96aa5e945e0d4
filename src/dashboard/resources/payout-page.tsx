import { formatMoney } from '../../domain/money';
import { type ReadPayout, readPayout } from '../../service/resources/read';
import { When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';
import { methodName } from './kinds';
import { answerResource, formatFailure } from './resource-page';

export const PAYOUT_ROUTE = viewRoute('/payouts/:id', 'Payout', showPayout);

async function showPayout(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readPayout(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: payout, recipient, timeline } = result;
  const { fee, currency, failure, returned } = payout;
  const reason = failure ?? (returned && { ...returned, message: returned.reason });
  return answerResource(call, {
    title: `Payout of ${formatMoney(payout.amount, currency)}`,
    status: payout.status,
    timeline,
    facts: [
      ['Id', <code key="id">{payout._id}</code>],
      ['Reference', payout.reference ?? '–'],
      ['Rail', methodName(payout.method)],
      ['Recipient', recipientText(recipient)],
      ['Fee', formatMoney(fee, currency)],
      ['Balance account', payout.balance_account],
      ['Reason', formatFailure(reason)],
      ['Bank reference', payout.bank_reference ?? '–'],
      ['Metadata', <code key="metadata">{payout.metadata}</code>],
      ['Created', <When key="created" at={payout.created_at} />],
      ['Sent', <When key="sent" at={payout.sent_at} />],
      ['Completed', <When key="completed" at={payout.completed_at} />],
    ],
  });
}

/** Describes the recipient without details, which stay encrypted. */
function recipientText(recipient: ReadPayout['recipient']): string {
  if (recipient === null) return '–';
  const { type, scheme, last4, deleted_at } = recipient;
  const kind = type === 'card' ? 'Card' : 'Bank account';
  const name = [kind, scheme, `…${last4}`].filter((part) => part !== null).join(' ');
  return deleted_at ? `${name}, deleted` : name;
}
