import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { PROGRAM } from '../base/program';
import { ServiceError } from '../domain/errors';
import type { CliContext } from './context';

export interface CliCommand {
  /** Calls for the parent's `--help`, without the program's name. */
  examples: readonly string[];
  addTo: (parent: Command, context: CliContext) => void;
}

interface Definition<Options extends z.ZodObject> {
  name: string;
  description: string;
  /**
   * Options by schema: `balance_account` is `--balance-account`. `.meta()` may hold the value's
   * `placeholder`, or `argument: true` for a positional argument.
   */
  options: Options;
  notes?: string;
  example: string;
  run: (context: CliContext, options: z.output<Options>) => Promise<void> | void;
}

export function defineCommand<Options extends z.ZodObject>({
  name,
  description,
  options,
  notes = '',
  example,
  run,
}: Definition<Options>): CliCommand {
  const addTo = (parent: Command, context: CliContext) => {
    const command = parent.command(name).description(description);
    const readers = Object.entries(options.shape).map(([field, schema]) =>
      addField(command, field, schema),
    );
    command
      .addHelpText('after', formatHelp(notes, [example]))
      .action(() =>
        run(context, parseInput(options, Object.fromEntries(readers.map((read) => read())))),
      );
  };
  return { examples: [example], addTo };
}

/** Refuses the old name of a command, with whatever follows it. Help does not list it. */
export function defineRenamed(name: string, hint: string): CliCommand {
  const addTo = (parent: Command) => {
    parent
      .command(name, { hidden: true })
      .helpOption(false)
      .allowUnknownOption()
      .allowExcessArguments()
      .action(() => {
        throw new ServiceError('invalid_usage', hint);
      });
  };
  return { examples: [], addTo };
}

interface GroupDefinition {
  name: string;
  description: string;
  notes?: string;
  commands: readonly CliCommand[];
}

export function defineGroup({ name, description, notes, commands }: GroupDefinition): CliCommand {
  const examples = commands.flatMap((command) => command.examples);
  const addTo = (parent: Command, context: CliContext) => {
    const group = parent.command(name).description(description);
    for (const command of commands) command.addTo(group, context);
    group.addHelpText('after', formatHelp(notes, examples));
  };
  return { examples, addTo };
}

function formatHelp(notes = '', examples: readonly string[]): string {
  const calls = examples.map((example) => `  ${PROGRAM.cli} ${example}`);
  const heading = calls.length === 1 ? 'Example:' : 'Examples:';
  return `${notes === '' ? '' : `\n${notes.trim()}\n`}\n${[heading, ...calls].join('\n')}`;
}

/** @throws ServiceError `invalid_usage` */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw new ServiceError('invalid_usage', getFault(result.error));
}

type ReadField = () => readonly [field: string, text: unknown];

function addField(command: Command, field: string, schema: z.core.$ZodType): ReadField {
  const { description, placeholder = field, argument, renamed, type } = readFacts(schema);
  const isMandatory = !z.safeParse(schema, undefined).success;
  const isList = type instanceof z.ZodArray;
  const check = (text: string, before: unknown): unknown => {
    const value = isList ? [...(Array.isArray(before) ? before : []), text] : text;
    const result = z.safeParse(schema, value);
    if (result.success) return value;
    throw new InvalidArgumentError(getFault(result.error));
  };
  if (argument) {
    const index = command.registeredArguments.length;
    const name = `${placeholder}${isList ? '...' : ''}`;
    const flags = isMandatory ? `<${name}>` : `[${name}]`;
    command.addArgument(restrict(new Argument(flags, description), type, renamed));
    return () => [field, command.processedArgs[index]];
  }
  const name = `--${field.replaceAll('_', '-')}`;
  const flags = type instanceof z.ZodBoolean ? name : `${name} <${placeholder}>`;
  const option = new Option(flags, isList ? `${description} (repeatable)` : description);
  const fallback = schema instanceof z.ZodDefault ? schema.def.defaultValue : false;
  if (fallback !== false) option.default(String(fallback), String(fallback));
  option.makeOptionMandatory(isMandatory);
  command.addOption(
    type instanceof z.ZodEnum ? restrict(option, type, renamed) : option.argParser(check),
  );
  return () => [field, command.opts()[option.attributeName()]];
}

/** @param renamed what to say of choices that have another name now */
function restrict<Input extends Argument | Option>(
  input: Input,
  type: z.core.$ZodType,
  renamed: Record<string, string>,
): Input {
  if (!(type instanceof z.ZodEnum)) return input;
  const choices = type.options.map(String);
  input.choices(choices).argParser((text: string) => {
    if (choices.includes(text)) return text;
    throw new InvalidArgumentError(renamed[text] ?? `Allowed choices are ${choices.join(', ')}.`);
  });
  return input;
}

const Facts = z.object({
  description: z.string().default(''),
  placeholder: z.string().optional(),
  argument: z.boolean().default(false),
  renamed: z.record(z.string(), z.string()).default({}),
});

function readFacts(schema: z.core.$ZodType) {
  let type = schema;
  let meta = { ...z.globalRegistry.get(type) };
  for (;;) {
    if (type instanceof z.ZodOptional || type instanceof z.ZodDefault) type = type.unwrap();
    else if (type instanceof z.ZodPipe) type = type.in;
    else return { ...Facts.parse(meta), type };
    meta = { ...z.globalRegistry.get(type), ...meta };
  }
}

function getFault({ issues }: z.core.$ZodError): string {
  return issues[0]?.message ?? 'It is not valid.';
}
