import { ActFailure } from '../../domain/act-failure';
import type { SendAgainFilter } from '../../store/events';
import type { DashboardDeps } from '../deps';
import { Field, Filters } from '../fields';
import { field } from '../form';
import { Note, PageHead, Panel, PostForm } from '../parts';
import { boundsOf, readWish } from '../resources/filter';
import type { Answer, Call, Route } from '../route';

const PATH = '/webhooks/send-failed';
const DAY_MS = 86_400_000;

export const SEND_FAILED_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: PATH,
    act: 'events.send',
    title: 'Send failed events again',
    handle: countFailed,
  },
  {
    method: 'post',
    path: PATH,
    act: 'events.send',
    title: 'Send failed events again',
    whileFrozen: true,
    handle: sendFailed,
  },
];

/** Accounts whose failed events this process is sending. */
const underWay = new Set<string>();

/** Events that were given up, since a day. */
function filterOf({ scope, now }: Call, from: string): SendAgainFilter {
  const { since = '' } = boundsOf({ from, to: undefined });
  return { ...scope, since, until: now.toISOString(), statuses: ['exhausted'] };
}

/** Counts them first; a week back when no day is given. */
async function countFailed(call: Call, { redeliveries }: DashboardDeps): Promise<Answer> {
  const weekAgo = new Date(call.now.getTime() - 7 * DAY_MS).toISOString().slice(0, 10);
  const { from = weekAgo } = readWish(call.query, { statuses: [], methods: [] });
  try {
    const { found } = await redeliveries.count(filterOf(call, from));
    return { page: <SendFailedPage call={call} from={from} found={found} /> };
  } catch (error) {
    if (!(error instanceof ActFailure)) throw error;
    return { go: call.href('/webhooks'), flash: { tone: 'bad', text: error.message } };
  }
}

/**
 * Sends them while the person goes on, 20 a second. A process that ends meanwhile leaves the rest
 * as they are, and pressing the button again sends those.
 */
async function sendFailed(call: Call, { redeliveries, log }: DashboardDeps): Promise<Answer> {
  const { scope, form, href } = call;
  const asked = new URLSearchParams({ from: field(form, 'from') });
  const { from } = readWish(asked, { statuses: [], methods: [] });
  if (from === undefined) return 'not_found';
  const name = `${scope.account_id} ${scope.livemode}`;
  const go = href('/webhooks/deliveries?status=pending');
  const text =
    'They are being sent, 20 a second. Those that are not delivered yet are listed here.';
  if (!underWay.has(name)) {
    const line = { act: 'event.sent', ...scope, target: null } as const;
    await call.audit({ ...line, after: { since: from, delivery: 'exhausted' } });
    underWay.add(name);
    void redeliveries
      .all(filterOf(call, from))
      .catch((err) => log.warn({ err }, 'failed events were not all sent again'))
      .finally(() => underWay.delete(name));
  }
  return { go, flash: { tone: 'good', text } };
}

function SendFailedPage({ call, from, found }: { call: Call; from: string; found: number }) {
  const { viewer, href } = call;
  return (
    <>
      <PageHead title="Send failed events again" />
      <Panel>
        <Filters action={href(PATH)}>
          <Field label="Failed since" name="from" type="date" value={from} hint="A day, UTC." />
        </Filters>
        {found === 0 ? (
          <p>No event since then was given up.</p>
        ) : (
          <>
            <Note tone="note">
              {`${found} ${found === 1 ? 'event was' : 'events were'} given up. Each is sent to the endpoint as it is now.`}
            </Note>
            <PostForm
              viewer={viewer}
              action={href(PATH)}
              button={`Send ${found} again`}
              hidden={{ from }}
              busy="Sending…"
            />
          </>
        )}
        <a href={href('/webhooks/deliveries')}>Back to deliveries</a>
      </Panel>
    </>
  );
}
