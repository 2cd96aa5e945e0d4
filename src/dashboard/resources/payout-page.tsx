import { formatMoney } from '../../domain/money';
import { type ReadPayout, readPayout } from '../../service/resources/read';
import { Facts, PageHead, Panel, Status, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { methodName } from './kinds';
import { Timeline } from './timeline';

export const PAYOUT_ROUTE: Route = {
  method: 'get',
  path: '/payouts/:id',
  act: 'view',
  title: 'Payout',
  handle: showPayout,
};

async function showPayout(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readPayout(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: payout, recipient, timeline } = result;
  const { _id, amount, fee, currency, status, failure, returned } = payout;
  const problem = failure ?? returned;
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
            ...(problem === null
              ? []
              : ([['Reason', `${getReason(problem)} (${problem.code})`]] as const)),
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

function getReason(problem: { message: string } | { reason: string }): string {
  return 'message' in problem ? problem.message : problem.reason;
}

/** Describes the recipient without details, which stay encrypted. */
function recipientText(recipient: ReadPayout['recipient']): string {
  if (recipient === null) return '–';
  const { type, scheme, last4, deleted_at } = recipient;
  const kind = type === 'card' ? 'Card' : 'Bank account';
  const name = [kind, scheme, `…${last4}`].filter((part) => part !== null).join(' ');
  return deleted_at ? `${name}, deleted` : name;
}
