(* Works in four domains until a file exists; or checks how much that is: like steady.ml. *)

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

let say (rounds, sum) = Printf.printf "%d rounds: %x\n" rounds sum

let () =
  match Sys.argv with
  | [| _; "check"; rounds |] ->
      Printf.printf "%s rounds: %x\n" rounds (check (int_of_string rounds) 0)
  | _ ->
      let work () = work Sys.argv.(1) 0 0 in
      let domains = List.init 3 (fun _ -> Domain.spawn work) in
      say (work ());
      List.iter (fun domain -> say (Domain.join domain)) domains
