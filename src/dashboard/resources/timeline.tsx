import type { TimelineEntry, TimelineEntryKind } from '../../service/resources/timeline';
import { Badge, Panel, When } from '../frame/parts';

const NAMES: Readonly<Record<TimelineEntryKind, string>> = {
  call: 'API',
  callback: 'Bank',
  chain: 'Chain',
  act: 'Operator',
  move: 'Status',
  posting: 'Ledger',
  event: 'Event',
  attempt: 'Webhook',
};

export function Timeline({
  entries,
  href,
}: {
  entries: readonly TimelineEntry[];
  href: (path: string) => string;
}) {
  return (
    <Panel title="Timeline">
      <ol class="timeline">
        {entries.map((entry, at) => (
          <li key={at} class={entry.tone}>
            <div class="timeline-head">
              <Badge tone={entry.tone}>{NAMES[entry.kind]}</Badge>
              <strong>
                {entry.kind === 'event' && entry.event_id !== undefined ? (
                  <a href={href(`/webhooks/deliveries/${entry.event_id}`)}>{entry.title}</a>
                ) : (
                  entry.title
                )}
              </strong>
              <span class="muted">
                <When at={entry.at} />
              </span>
            </div>
            {entry.details.map((detail) => (
              <p key={detail} class="muted small">
                {detail}
              </p>
            ))}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
