import { ActFailure } from '../../domain/act-failure';
import type { Stores } from '../../store';
import type { DeliveryDocument } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { DashboardDeps } from '../deps';
import { Facts, PageHead, Panel, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import { deliveryText } from '../timeline/assemble';
import { AttemptFacts } from './attempt';
import { SendAgain } from './deliveries';

export const DELIVERY_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/webhooks/deliveries/:id',
    act: 'view',
    title: 'Delivery',
    handle: showDelivery,
  },
  {
    method: 'post',
    path: '/webhooks/deliveries/:id/send-again',
    act: 'events.send',
    title: 'Send again',
    whileFrozen: true,
    handle: sendAgain,
  },
];

/** Finds an event of this account and environment. */
async function ownEvent(
  { events }: Pick<Stores, 'events'>,
  { params, scope }: Call,
): Promise<EventDocument | null> {
  const event = await events.get(params['id'] ?? '');
  const isOwn = event?.account_id === scope.account_id && event.livemode === scope.livemode;
  return isOwn ? event : null;
}

async function showDelivery(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const event = await ownEvent(stores, call);
  if (event === null) return 'not_found';
  const attempts = await stores.deliveries.forEvent(event._id);
  return { title: event.type, page: <DeliveryPage {...{ call, event, attempts }} /> };
}

/** Sends it with twelve new attempts, to the endpoint as it is now. */
async function sendAgain(call: Call, { stores, redeliveries }: DashboardDeps): Promise<Answer> {
  const event = await ownEvent(stores, call);
  if (event === null) return 'not_found';
  const go = call.href(`/webhooks/deliveries/${event._id}`);
  try {
    const line = { act: 'event.sent', ...call.scope, target: event._id } as const;
    await call.audit({ ...line, after: { type: event.type } });
    await redeliveries.one(event._id);
    const text = 'It is being sent again. Load this page anew to see the answer.';
    return { go, flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof ActFailure)) throw error;
    return { go, flash: { tone: 'bad', text: error.message } };
  }
}

/** Pages of what events tell of, by the starts of their types. */
const ABOUT = [
  { of: 'payment.', noun: 'payment', path: '/payments' },
  { of: 'refund.', noun: 'refund', path: '/refunds' },
  { of: 'payout.', noun: 'payout', path: '/payouts' },
  { of: 'crypto.payment.', noun: 'crypto payment', path: '/crypto/payments' },
  { of: 'crypto.settlement.', noun: 'settlement', path: '/crypto/settlements' },
] as const;

interface DeliveryProps {
  call: Call;
  event: EventDocument;
  /** Newest first. */
  attempts: readonly DeliveryDocument[];
}

function DeliveryPage({ call, event, attempts }: DeliveryProps) {
  const { _id, type, created, delivery, body, resource_id, data } = event;
  const about = data['test'] === true ? undefined : ABOUT.find(({ of }) => type.startsWith(of));
  return (
    <>
      <PageHead title={type} badge={<Status of={delivery.status} />}>
        <SendAgain call={call} event={event} />
      </PageHead>
      <Panel>
        <Facts
          rows={[
            ['Id', <code key="id">{_id}</code>],
            [
              'About',
              about ? (
                <a key="about" href={call.href(`${about.path}/${resource_id}`)}>
                  {`The ${about.noun} `}
                  <code>{resource_id}</code>
                </a>
              ) : (
                'A test: what it names does not exist.'
              ),
            ],
            ['Created', <When key="created" at={created} />],
            ['Delivery', deliveryText(delivery)],
            ['Attempts', String(delivery.attempts)],
            ['Next attempt', <When key="next" at={delivery.next_attempt_at} />],
          ]}
        />
        <h2>Request body</h2>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
        <pre class="wrap" tabIndex={0}>
          {body}
        </pre>
      </Panel>
      {attempts.map((row) => (
        <Panel key={`${row.run} ${row.attempt}`} title={attemptTitle(row)}>
          <AttemptFacts row={row} />
        </Panel>
      ))}
      {attempts.length === 0 && <p class="empty">No attempt was made yet.</p>}
    </>
  );
}

function attemptTitle({ run, attempt }: DeliveryDocument): string {
  return run === 0 ? `Attempt ${attempt}` : `Attempt ${attempt}, sent again ${run}`;
}
