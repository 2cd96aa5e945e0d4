import { formatMoney } from '../../domain/money';
import type { RecipientDocument } from '../../store/recipients';
import type { DashboardDeps } from '../deps';
import { Facts, PageHead, Panel, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import { readTimeline } from '../timeline/read';
import { Timeline } from '../timeline/view';
import { methodName } from './kinds';

export const PAYOUT_ROUTE: Route = {
  method: 'get',
  path: '/payouts/:id',
  act: 'view',
  title: 'Payout',
  handle: showPayout,
};

async function showPayout(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const payout = await stores.payouts.find(call.params['id'] ?? '', account_id, livemode);
  if (payout === null) return 'not_found';
  const [timeline, recipient] = await Promise.all([
    readTimeline(stores, 'payout', payout),
    stores.recipients.find(payout.recipient_id, account_id, livemode),
  ]);
  const { _id, amount, fee, currency, status, failure, returned } = payout;
  const why = failure ?? returned;
  const title = `Payout of ${formatMoney(amount, currency)}`;
  const page = (
    <>
      <PageHead title={title} badge={<Status of={status} />} />
      <Panel>
        <Facts
          rows={[
            ['Id', <code key="id">{_id}</code>],
            ['Reference', payout.reference ?? '–'],
            ['Rail', methodName(payout.method)],
            ['Recipient', recipientText(recipient)],
            ['Fee', formatMoney(fee, currency)],
            ['Balance account', payout.balance_account],
            ...(why === null ? [] : ([['Reason', `${reasonOf(why)} (${why.code})`]] as const)),
            ['Bank reference', payout.bank_reference ?? '–'],
            ['Metadata', <code key="metadata">{payout.metadata}</code>],
            ['Created', <When key="created" at={payout.created_at} />],
            ['Sent', <When key="sent" at={payout.sent_at} />],
            ['Completed', <When key="completed" at={payout.completed_at} />],
          ]}
        />
      </Panel>
      <Timeline entries={timeline} href={call.href} />
    </>
  );
  return { title, page };
}

function reasonOf(why: { message: string } | { reason: string }): string {
  return 'message' in why ? why.message : why.reason;
}

/** Facts that identify nobody: the details stay sealed. */
function recipientText(recipient: RecipientDocument | null): string {
  if (recipient === null) return '–';
  const { type, scheme, last4, deleted_at } = recipient;
  const kind = type === 'card' ? 'Card' : 'Bank account';
  const named = [kind, scheme, `…${last4}`].filter((part) => part !== null).join(' ');
  return deleted_at ? `${named}, deleted` : named;
}
