import { ServiceError } from '../../domain/errors';
import { formatCount } from '../../domain/format-count';
import { countFailedEvents, sendFailedEvents } from '../../service/events/redeliveries';
import { Field, Filters } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Note, PageHead, Panel, PostForm } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { parseDay } from '../resources/list-filters';

const PATH = '/webhooks/send-failed';
const DAY_MS = 86_400_000;

export const SEND_FAILED_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: PATH,
    act: 'events.send',
    cost: 20,
    title: 'Send failed events again',
    handle: countFailed,
  },
  {
    method: 'post',
    path: PATH,
    act: 'events.send',
    cost: 20,
    title: 'Send failed events again',
    whileFrozen: true,
    handle: sendFailed,
  },
];

async function countFailed(call: Call, deps: PageDeps): Promise<Answer> {
  const weekAgo = new Date(call.now.getTime() - 7 * DAY_MS).toISOString().slice(0, 10);
  const from = parseDay(call.query.get('from') ?? '') ?? weekAgo;
  try {
    const count = await countFailedEvents(deps, call.scope, from);
    return { page: <SendFailedPage call={call} from={from} count={count} /> };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return redirect(call, '/webhooks', 'bad', error.message);
  }
}

async function sendFailed(call: Call, deps: PageDeps): Promise<Answer> {
  const from = parseDay(field(call.form, 'from'));
  if (from === undefined) return 'not_found';
  await sendFailedEvents(deps, call.scope, from);
  const text =
    'They are being sent, 20 a second. Those that are not delivered yet are listed here.';
  return redirect(call, '/webhooks/deliveries?status=pending', 'good', text);
}

function SendFailedPage({ call, from, count }: { call: Call; from: string; count: number }) {
  const { href } = call;
  return (
    <>
      <PageHead title="Send failed events again" />
      <Panel>
        <Filters action={href(PATH)}>
          <Field label="Failed since" name="from" type="date" value={from} hint="A day, UTC." />
        </Filters>
        {count === 0 ? (
          <p>No event has failed since then.</p>
        ) : (
          <>
            <Note tone="note">
              {`${formatCount(count, 'event')} failed. Each is sent to the endpoint as it is now.`}
            </Note>
            <PostForm
              call={call}
              path={PATH}
              button={`Send ${count} again`}
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
