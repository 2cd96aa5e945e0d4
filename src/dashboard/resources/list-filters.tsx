import { Field, Filters, Select } from '../fields';
import { statusName } from '../status';
import type { ListWish } from './filter';

interface ListFiltersProps {
  wish: ListWish;
  /** Address of the list. */
  action: string;
  /** Words in the empty field `Search`. */
  hint: string;
  statuses: readonly string[];
  /** Second choice: its label, and the name of each value. */
  choice: { label: string; values: readonly (readonly [value: string, name: string])[] };
}

/** Filters of every list: a text, a status, one more choice, and days. */
export function ListFilters({ wish, action, hint, statuses, choice }: ListFiltersProps) {
  return (
    <Filters action={action}>
      <Field label="Search" name="search" type="search" value={wish.search} placeholder={hint} />
      <Select
        label="Status"
        name="status"
        value={wish.status ?? ''}
        options={[['', 'All'], ...statuses.map((one) => [one, statusName(one)] as const)]}
      />
      <Select
        label={choice.label}
        name="method"
        value={wish.method ?? ''}
        options={[['', 'All'], ...choice.values]}
      />
      <Field label="From" name="from" type="date" value={wish.from ?? ''} />
      <Field label="To" name="to" type="date" value={wish.to ?? ''} />
    </Filters>
  );
}
