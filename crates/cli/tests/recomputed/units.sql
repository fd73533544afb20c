-- Mapping units that writes put into the buffer or replaced there, and that they cover: all
-- that they write either way.
SELECT sum(units_written) AS put, sum(buffer_hits) FILTER (op = 'write') AS replaced,
       sum((offset_bytes + len_bytes + getvariable('unit') - 1) // getvariable('unit')
           - offset_bytes // getvariable('unit')) FILTER (op = 'write') AS covered,
       coalesce(sum(len_bytes // getvariable('unit')) FILTER (op IN ('discard', 'write_zeroes')),
                0) AS discarded,
       sum(flash_reads) AS flash_reads
FROM replayed;
