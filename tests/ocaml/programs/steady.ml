(* Works until a file exists, and says how much it did and a checksum of it; or checks how much that is.

   steady FILE              works until FILE exists
   steady FILE memprof      with a sampler of its own
   steady check ROUNDS      does so many rounds *)

module Ints = Map.Make (Int)

let round sum =
  let map = ref Ints.empty in
  for i = 0 to 499 do
    map := Ints.add (i * 7919 mod 10007) (string_of_int i) !map
  done;
  Ints.fold (fun k v sum -> ((sum * 31) + k + String.length v) land 0xffffff) !map sum

let rec check rounds sum = if rounds = 0 then sum else check (rounds - 1) (round sum)

let rec work file rounds sum =
  if rounds land 15 = 0 && Sys.file_exists file then (rounds, sum)
  else work file (rounds + 1) (round sum)

let () =
  match Sys.argv with
  | [| _; "check"; rounds |] ->
      Printf.printf "%s rounds: %x\n" rounds (check (int_of_string rounds) 0)
  | _ ->
      if Array.length Sys.argv > 2 then
        ignore (Gc.Memprof.start ~sampling_rate:1e-4 Gc.Memprof.null_tracker);
      let rounds, sum = work Sys.argv.(1) 0 0 in
      Printf.printf "%d rounds: %x\n" rounds sum
