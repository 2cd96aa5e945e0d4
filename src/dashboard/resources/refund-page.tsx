import { formatMoney } from '../../domain/money';
import { readResource } from '../../service/resources/read';
import { Facts, PageHead, Panel, Status, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { methodName } from './kinds';
import { Timeline } from './timeline';

export const REFUND_ROUTE: Route = {
  method: 'get',
  path: '/refunds/:id',
  act: 'view',
  title: 'Refund',
  handle: showRefund,
};

async function showRefund(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readResource(deps, 'refund', call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: refund, timeline } = result;
  const { _id, amount, currency, status, payment_id, failure } = refund;
  const title = `Refund of ${formatMoney(amount, currency)}`;
  const page = (
    <>
      <PageHead title={title} badge={<Status of={status} />} />
      <Panel>
        <Facts
          rows={[
            ['Id', <code key="id">{_id}</code>],
            [
              'Payment',
              <a key="payment" href={call.href(`/payments/${payment_id}`)}>
                <code>{payment_id}</code>
              </a>,
            ],
            ['Reason', refund.reason ?? '–'],
            ['Method', methodName(refund.method)],
            ...(failure === null
              ? []
              : ([['Failure', `${failure.message} (${failure.code})`]] as const)),
            ['Bank reference', refund.bank_reference ?? '–'],
            ['Created', <When key="created" at={refund.created_at} />],
            ['Settled', <When key="settled" at={refund.settled_at} />],
          ]}
        />
      </Panel>
      <Timeline entries={timeline} href={call.href} />
    </>
  );
  return { title, page };
}
