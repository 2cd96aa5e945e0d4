import { formatMoney } from '../../domain/money';
import type { DashboardDeps } from '../deps';
import { Facts, PageHead, Panel, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import { readTimeline } from '../timeline/read';
import { Timeline } from '../timeline/view';
import { methodName } from './kinds';

export const REFUND_ROUTE: Route = {
  method: 'get',
  path: '/refunds/:id',
  act: 'view',
  title: 'Refund',
  handle: showRefund,
};

async function showRefund(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const refund = await stores.refunds.find(call.params['id'] ?? '', account_id, livemode);
  if (refund === null) return 'not_found';
  const timeline = await readTimeline(stores, 'refund', refund);
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
