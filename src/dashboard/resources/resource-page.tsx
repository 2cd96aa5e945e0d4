import type { ComponentChildren, VNode } from 'preact';
import type { ReadResource } from '../../service/money/resources/read';
import type { TimelineEntry, TimelineEntryKind } from '../../service/money/resources/timeline';
import {
  Badge,
  type FactRow,
  Facts,
  NeedsAttentionNote,
  PageHead,
  Panel,
  Status,
  When,
} from '../frame/parts';
import type { Call } from '../frame/route';

interface ResourcePage extends Pick<ReadResource<unknown>, 'timeline'> {
  title: string;
  status: string;
  attention?: string | null;
  /** Says what the status means. */
  note?: ComponentChildren;
  facts: readonly FactRow[];
  tabs?: ComponentChildren;
  children?: ComponentChildren;
}

export function answerResource(
  call: Call,
  resourcePage: ResourcePage,
): { page: VNode; title: string } {
  const { title, status, attention = null, note, facts, tabs, children, timeline } = resourcePage;
  const page = (
    <>
      {tabs}
      <PageHead title={title} badge={<Status of={status} />} />
      <NeedsAttentionNote attention={attention} />
      {note}
      <Panel>
        <Facts rows={facts} />
      </Panel>
      {children}
      <Timeline entries={timeline} href={call.href} />
    </>
  );
  return { title, page };
}

export function formatFailure(failure: { message: string; code: string } | null): string | null {
  return failure && `${failure.message} (${failure.code})`;
}

const NAMES: Readonly<Record<TimelineEntryKind, string>> = {
  call: 'API',
  callback: 'Bank',
  chain: 'Chain',
  act: 'Operator',
  transition: 'Status',
  entry: 'Ledger',
  event: 'Event',
  attempt: 'Webhook',
};

function Timeline({ entries, href }: { entries: TimelineEntry[]; href: Call['href'] }) {
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
