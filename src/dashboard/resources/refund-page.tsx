import { formatMoney } from '../../domain/money';
import { readResource } from '../../service/resources/read';
import { When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';
import { methodName } from './kinds';
import { answerResource, formatFailure } from './resource-page';

export const REFUND_ROUTE = viewRoute('/refunds/:id', 'Refund', showRefund);

async function showRefund(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readResource(deps, 'refund', call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: refund, timeline } = result;
  const { payment_id } = refund;
  return answerResource(call, {
    title: `Refund of ${formatMoney(refund.amount, refund.currency)}`,
    status: refund.status,
    timeline,
    facts: [
      ['Id', <code key="id">{refund._id}</code>],
      [
        'Payment',
        <a key="payment" href={call.href(`/payments/${payment_id}`)}>
          <code>{payment_id}</code>
        </a>,
      ],
      ['Reason', refund.reason ?? '–'],
      ['Method', methodName(refund.method)],
      ['Failure', formatFailure(refund.failure)],
      ['Bank reference', refund.bank_reference ?? '–'],
      ['Created', <When key="created" at={refund.created_at} />],
      ['Settled', <When key="settled" at={refund.settled_at} />],
    ],
  });
}
